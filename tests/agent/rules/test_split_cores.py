"""Iterations shared between two cores: where the problem launches the kernel, and with an odd number of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.nki_rule_cases import CASES, loaded

from accelopt_agent.rules import catalogue
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.report import quantities
from accelopt_profiling.nki.time_model.estimate import estimate
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.quantity import executed

RULE = "nki-split-cores"
BARE = next(case for case in CASES if case.rule == RULE and case.name == "current: no launch in the file")
TEXT = BARE.whole(BARE.before)


def candidates(text: str, cores: int) -> list[str]:
    kernel = find_kernels(text).kernels[0]
    core_counts = {"cores": executed(cores, "")} if cores > 1 else {}
    measured = KernelMeasurement(kernel.name, kernel.line, "nki", "trn2", quantities=core_counts)
    return [c.text for c in catalogue.apply(RULE, text, kernel, measured)]


def test_a_kernel_that_the_problem_launches_on_two_cores_needs_no_launch_in_its_file() -> None:
    assert candidates(TEXT, 1) == []
    (changed,) = candidates(TEXT, 2)
    assert "range(core, 2, cores)" in changed
    assert candidates(changed, 2) == []  # it tells its programs apart now


def test_a_kernel_that_calls_another_does_not_launch_it() -> None:
    caller = "\n\n@nki.jit\ndef outer(x, w):\n    return kernel(x, w)\n"
    assert candidates(TEXT + caller, 1) == []
    assert len(candidates(TEXT + caller.replace("@nki.jit\n", ""), 1)) == 1


@pytest.mark.parametrize("rows", [128, 384])
def test_each_row_is_made_once_whatever_the_number_of_cores(rows: int) -> None:
    text = TEXT.replace("range(2)", f"range({rows // 128})").replace("(256, 1024)", f"({rows}, 1024)")
    (changed,) = candidates(text, 2) or [text]
    x, w = (np.random.default_rng(3).standard_normal((n, 1024), dtype=np.float32) for n in (rows, 128))
    expected = x + 1
    reads = []
    for grid in (1, 2):
        with emulated(limits=hardware("trn2").limits) as emulation:
            kernel = loaded(changed).kernel
            result = (kernel if grid == 1 else kernel[grid])(x, w)
        np.testing.assert_array_equal(result, expected)
        answer = quantities(estimate(emulation.machines[-1].trace, hardware("trn2")))
        reads.append(answer["dma_read_bytes"].value)
        assert ("cores" in answer) == (grid == 2)
    once = x.nbytes
    assert reads == ([once, 2 * once] if rows == 128 else [once, once])
