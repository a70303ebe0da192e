"""Each NKI rule on a baseline of NKIBench: the counters that it names move as it says, and the result stays right.

Some rules find nothing in the plain baselines; they are shown on a baseline with one thing written as other people's
kernels write it. The test holds such a version against the task's reference, too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from support.nki_rule_cases import launched, loaded

from accelopt_agent.rules import catalogue
from accelopt_profiling.comparison.reference import widen
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.nki.data.instruction import TENSOR, VECTOR
from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.report import quantities
from accelopt_profiling.nki.time_model.estimate import estimate, waits
from accelopt_profiling.nki.time_model.hardware import AS_WRITTEN, hardware
from nkibench.task import tasks

#: Sizes at which each loop that matters runs more than once.
SIZES = {
    "adamw": {"M": 128, "N": 1024},
    "add_rmsnorm_matmul": {"M": 256, "N": 1024, "K": 256},
    "bmm": {"B": 1, "M": 512, "K": 64, "N": 1024},
    "bmm_softmax": {"B": 1, "M": 256, "K": 64, "N": 1024},
    "gqa_full": {"B": 1, "N": 512, "QH": 2, "KH": 1, "D": 64},
    "mamba": {"M": 1024, "C": 128, "S": 2},
    "matmul_add_rmsnorm": {"M": 128, "N": 512, "K": 256},
    "rope_single_freq_apply": {"B": 1, "H": 2, "N": 512, "D": 128},
    "silu": {"M": 128, "N": 1024},
}

#: The task whose baseline shows a rule.
PLAIN = {
    "nki-keep-transposed": "bmm",
    "nki-block-loop": "bmm",
    "nki-keep-computed": "bmm",
    "nki-wider-stores": "bmm",
    "nki-wider-loads": "bmm",
    "nki-hoist-load": "bmm",
    "nki-interchange-loops": "bmm",
    "nki-sigmoid-activation": "silu",
    "nki-hoist-compute": "mamba",
    "nki-activation-reduce": "bmm_softmax",
    "nki-stack-iterations": "rope_single_freq_apply",
    "nki-larger-tiles": "adamw",
    "nki-broadcast-in-psum": "mamba",
    "nki-sum-on-tensor": "mamba",
    "nki-fuse-activation-input": "bmm_softmax",
    "nki-scalar-tensor-tensor": "adamw",
    "nki-combine-tensor-scalar": "matmul_add_rmsnorm",
    "nki-own-multiple": "adamw",
    "nki-value-in-psum": "mamba",
    "nki-turned-softmax": "gqa_full",
    "nki-divide-by-column": "bmm_softmax",
    "nki-balance-engines": "adamw",
    "nki-choose-engine": "adamw",
}

#: Rules that gain little in Beta 1, or come after others there: the task whose baseline in today's dialect shows one.
CURRENT = {
    "nki-split-cores": "rope_single_freq_apply",
    "nki-split-loop": "bmm_softmax",
    "nki-work-ahead": "bmm_softmax",
    "nki-bf16-parts": "bmm",
}

#: What a file needs for a rule that changes the launch.
LAUNCH = """

def launch(*arguments):
    return kernel(*arguments)
"""

#: The task, and what of its baseline is written in another way: the old lines and the new.
CHANGED: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "nki-rsqrt-activation": (
        "matmul_add_rmsnorm",
        [
            (
                "normal = nl.divide(y, root)",
                "inverse = nl.reciprocal(root)\n        normal = nl.multiply(y, inverse)",
            )
        ],
    ),
    "nki-reuse-load": (
        "silu",
        [
            (
                "result = nl.divide(tile, denominator)",
                "again = nl.load(x[i * ROWS + rows, j * COLUMNS + columns])\n"
                "            result = nl.divide(again, denominator)",
            )
        ],
    ),
    "nki-merge-tiles": (
        "silu",
        [
            ("nl.affine_range(n // COLUMNS)", "nl.affine_range(2)"),
            ("j * COLUMNS + columns", "j * 512 + nl.arange(512)[None, :]"),
            ("i * ROWS + rows", "i * ROWS + nl.arange(128)[:, None]"),
        ],
    ),
    "nki-keep-resident": (
        "add_rmsnorm_matmul",
        [
            (
                "w[ki * TILE_K + i_k, ni * TILE_N + j_n]",
                "w[ki * TILE_K : (ki + 1) * TILE_K, ni * TILE_N : (ni + 1) * TILE_N]",
            )
        ],
    ),
    "nki-fuse-loops": (
        "silu",
        [
            (
                "        for j in",
                "        kept = nl.ndarray((n // COLUMNS, nl.par_dim(ROWS), COLUMNS), dtype=x.dtype)\n        for j in",
            ),
            (
                "            negative =",
                "            kept[j, rows, columns] = nl.copy(tile)\n"
                "        for j in nl.affine_range(n // COLUMNS):\n"
                "            tile = nl.copy(kept[j, rows, columns])\n"
                "            negative =",
            ),
        ],
    ),
    "nki-hoist-transpose": (
        "add_rmsnorm_matmul",
        [("scaled[i_m, ki * TILE_K + j_k]", "scaled[:, ki * TILE_K : (ki + 1) * TILE_K]")],
    ),
}


def version(rule: str) -> tuple[str, str]:
    """The task and the kernel file that show a rule."""
    if rule in CURRENT:
        return CURRENT[rule], tasks()[CURRENT[rule]].kernel("nki").read_text(encoding="utf-8") + LAUNCH
    task, changes = (PLAIN[rule], []) if rule in PLAIN else CHANGED[rule]
    text = tasks()[task].kernel("beta1").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return task, text


@cache
def problem(task: str) -> tuple[Any, list[Any], Any]:
    """The reference's module, the kernel's arguments, and the expected result."""
    reference = loaded(tasks()[task].reference.read_text(encoding="utf-8"))
    np.random.seed(7)
    inputs = reference.get_inputs(**SIZES[task])
    return reference, reference.transform_to_nki_inputs(inputs), reference.forward(*map(widen, inputs))


@cache
def counters(task: str, text: str) -> dict[str, float]:
    """What the schedule of a kernel counts, after its result was held against the reference's."""
    reference, arguments, expected = problem(task)
    with emulated() as emulation:
        result = launched(text, *arguments)
    (output,) = reference.transform_nki_outputs(result, expected)
    assert np.linalg.norm(output - expected) < tasks()[task].gate_tolerance * np.linalg.norm(expected)
    # A rule changes what the kernel asks for; what the compiler would make of it is not the question here.
    answer = estimate(emulation.machines[-1].trace, hardware("trn1"), AS_WRITTEN)
    counts = {name: q.value for name, q in quantities(answer).items() if q.value is not None}
    # A measurement tells the waits of the busiest engine only.
    idle = {f"{e} waits": sum(wait.ns for wait in waits(answer.schedule, e)) / 1000 for e in (TENSOR, VECTOR)}
    return counts | idle


NKI_RULES = [rule for rule in catalogue.rules() if rule.dialect == "nki"]


def test_each_rule_is_shown_on_one_baseline() -> None:
    assert sorted([*PLAIN, *CURRENT, *CHANGED]) == sorted(rule.name for rule in NKI_RULES)


@pytest.mark.slow
@pytest.mark.parametrize("rule", NKI_RULES, ids=lambda rule: rule.name)
def test_the_counters_of_a_baseline_move_as_the_rule_says(rule: catalogue.Rule) -> None:
    """The first rewrite moves every counter that it is said to move, strictly and in the direction said."""
    task, text = version(rule.name)
    (kernel,) = find_kernels(text).kernels
    bound = KernelMeasurement(kernel.name, kernel.line, "nki", "trn1", bound=rule.helps[0])
    candidates = catalogue.apply(rule.name, text, kernel, bound)
    assert candidates
    before, after = counters(task, text), counters(task, candidates[0].text)
    for counter, way in candidates[0].expects.items():
        change = after.get(counter, 0.0) - before.get(counter, 0.0)
        assert change * (1 if way == "up" else -1) > 0, (counter, before.get(counter), after.get(counter))


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(SIZES))
def test_every_rewrite_of_a_baseline_in_the_current_dialect_keeps_the_result(task: str) -> None:
    """At least one rule applies, and each rewrite that runs at this size computes what the reference does."""
    reference, arguments, expected = problem(task)
    text = tasks()[task].kernel("nki").read_text(encoding="utf-8")
    limits = hardware("trn2").limits
    candidates = list(catalogue.proposals(text, find_kernels(text).kernels[0], strict=True))
    right = 0
    for candidate in candidates:
        with emulated(limits=limits):
            try:
                result = loaded(candidate.text).kernel(*arguments)
            except (AssertionError, KernelFaultError):
                continue  # sizes that the rewrite does not take, as it says itself, or no room
        (output,) = reference.transform_nki_outputs(result, expected)
        error = np.linalg.norm(output - expected)
        assert error < tasks()[task].gate_tolerance * np.linalg.norm(expected), candidate.summary
        right += 1
    assert right > 0
