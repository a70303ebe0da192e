"""What does not fit is told on its line, with what takes the room."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nki_kernels import sums_in_banks
from support.nki_source import FIRST_LINE, run
from support.problem_files import context_of

from accelopt_profiling.jobs import ProfileParams
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.nki.data.instruction import BlockInfo, TracedInstruction
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.peak_usage import peak_usage
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.profile import profile
from accelopt_profiling.problems.ref import ProblemRef

A = np.ones((128, 8192), np.float32)

CURRENT = """\
import nki, nki.isa as nisa, nki.language as nl
import numpy as np

@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tiles = []
    for n in range({count}):
        tile = nl.ndarray((128, 8192), dtype=nl.float32, buffer=nl.sbuf, name="row")
        nisa.dma_copy(tile, a)
        tiles.append(tile)
    total = nl.ndarray((128, 8192), dtype=nl.float32, buffer=nl.sbuf, name="total")
    nisa.tensor_copy(total, tiles[0])
    for tile in tiles[1:]:
        nisa.tensor_tensor(total, total, tile, nl.add)
    nisa.dma_copy(out, total)
    return out
"""


def findings(text: str) -> list[tuple[str, int, str, str]]:
    with emulated("trace") as emulation:
        space: dict[str, object] = {}
        exec(compile(text, "kernel.py", "exec"), space)  # noqa: S102
        space["kernel"](A)  # type: ignore[operator]
    return [(f.code, f.line, f.severity, f.message) for f in emulation.machines[-1].findings]


def test_more_than_sbuf_holds_is_told_with_the_tiles_that_hold_it() -> None:
    assert findings(CURRENT.format(count=5)) == []  # six tiles of 32 KiB: all there is
    ((code, line, severity, message),) = findings(CURRENT.format(count=6))
    assert (code, line, severity) == ("capacity", 13, "warning")
    assert "224 KiB per partition are alive in SBUF here, which has 192 KiB" in message
    assert "192 KiB in 6 tiles of row (line 9), 32 KiB in 1 tile of total (line 12)" in message


def test_blocks_of_beta_1_are_counted_one_by_one() -> None:
    body = """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nl.ndarray((7, nl.par_dim(128), 8192), dtype=np.float32, buffer=nl.sbuf, name="rows")
    for n in nl.affine_range(7):
        rows[n] = nl.load(a)
    for n in nl.affine_range(7):
        nl.store(out, rows[n])
    return out
    """
    (finding,) = run(body, A, mode="trace").findings
    assert (finding.code, finding.line, finding.severity) == ("capacity", FIRST_LINE + 3, "warning")
    assert re.search(r"224 KiB in 7 tiles of rows \(line 9\)", finding.message), finding.message


@pytest.mark.parametrize(("banks", "lines"), [(8, []), (9, [12])])
def test_more_banks_than_psum_has_are_told(banks: int, lines: list[int], tmp_path: Path) -> None:
    text = sums_in_banks(banks)
    params = ProfileParams(list(find_kernels(text).kernels), ProblemRef("module"), "trn2")
    (kernel,) = profile(context_of(tmp_path, {"k.py": text}), params)
    assert kernel.correctness.status == "passed", kernel.correctness
    assert [f.line for f in kernel.findings if f.code == "capacity" and "PSUM banks" in f.message] == lines


spans = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 50), st.sampled_from("ab"))


@given(st.lists(spans, max_size=8))
def test_the_peak_is_the_largest_sum_over_time(tiles: list[tuple[int, int, int, str]]) -> None:
    instructions = [TracedInstruction("x", ("VectorE",), 100 + n, 1, 1) for n in range(10)]
    alive = [0] * 10
    for ident, (one, other, size, name) in enumerate(tiles):
        place = BlockInfo(ident, MemorySpace.SBUF, (1, size), 1, name, ident, False)
        for number in {one, other}:
            instructions[number].reads.append((place, ((0, 1), (0, size))))
        for number in range(min(one, other), max(one, other) + 1):
            alive[number] += size
    usage = peak_usage(instructions)
    assert usage.peak == max(alive)
    if usage.peak:
        assert usage.line == 100 + alive.index(usage.peak)
        assert sum(h.bytes for h in usage.holders) == usage.peak
