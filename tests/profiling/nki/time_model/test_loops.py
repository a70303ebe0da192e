"""Loops found in flat programs, and schedules that follow only some of their iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.nki_source import run

from accelopt_profiling.nki.data.instruction import Trace
from accelopt_profiling.nki.time_model import schedule as scheduling
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.nki.time_model.loops import Part, find_loops
from accelopt_profiling.nki.time_model.schedule import Schedule, prepare, schedule

TRN1 = hardware("trn1")


nested = st.recursive(
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda bodies: st.integers(1, 5).map(lambda n: [key for body in bodies for key in body] * n)
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(nested)
def test_the_parts_spell_out_the_program(keys: list[int]) -> None:
    """Each ident of a single step stands for one key, in the order of the program."""
    parts = find_loops(keys)
    assert sum(part.size for part in parts) == len(keys)
    spelled = iter(keys)
    key_of: dict[int, int] = {}

    def walk(some: Sequence[Part]) -> None:
        for part in some:
            for _ in range(part.count if part.body else 1):
                if part.body:
                    walk(part.body)
                else:
                    assert key_of.setdefault(part.ident, key := next(spelled)) == key

    walk(parts)
    assert len(set(key_of.values())) == len(key_of)


@pytest.mark.parametrize("counts", [(7,), (5, 4), (3, 6, 4), (2, 3, 2, 5)])
def test_nested_loops_become_as_many_parts_as_they_have_lines(counts: tuple[int, ...]) -> None:
    keys = [99]
    for depth, count in enumerate(reversed(counts)):
        keys = [depth, *keys, 50 + depth] * count
    parts = find_loops(keys)
    assert len(parts) == 1
    depth, part = 0, parts[0]
    while part.body:
        assert part.count == counts[depth]
        depth, part = depth + 1, part.body[1]
    assert depth == len(counts)


def followed_and_all(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> tuple[Schedule, Schedule]:
    program = prepare(trace.instructions, TRN1)
    quick = schedule(program, TRN1)
    monkeypatch.setattr(scheduling._Scheduler, "_advance", lambda *_: None)
    return quick, schedule(program, TRN1)


STREAM = """
out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
for i in nl.affine_range(a.shape[0] // 128):
    for j in nl.affine_range(4):
        x = nl.load(a[i * 128:i * 128 + 128, j * 512:j * 512 + 512])
        y = nl.multiply(nl.exp(x), x)
        nl.store(out[i * 128:i * 128 + 128, j * 512:j * 512 + 512], y)
return out
"""
PRODUCT = """
out = nl.ndarray((a.shape[1], b.shape[1]), dtype=a.dtype, buffer=nl.shared_hbm)
for m in nl.affine_range(a.shape[1] // 128):
    for n in nl.affine_range(b.shape[1] // 512):
        bank = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
        for k in nl.affine_range(a.shape[0] // 128):
            left = nl.load(a[k * 128:k * 128 + 128, m * 128:m * 128 + 128])
            right = nl.load(b[k * 128:k * 128 + 128, n * 512:n * 512 + 512])
            bank += nisa.nc_matmul(left, right)
        nl.store(out[m * 128:m * 128 + 128, n * 512:n * 512 + 512], nl.copy(bank))
return out
"""
CARRIED = """
out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
total = nl.zeros((128, 512), nl.float32)
for i in nl.sequential_range(a.shape[0] // 128):
    total += nl.load(a[i * 128:i * 128 + 128, 0:512])
nl.store(out, total)
return out
"""


@pytest.mark.parametrize(
    ("body", "shapes"),
    [(STREAM, [(4096, 2048)]), (PRODUCT, [(1024, 1024), (1024, 4096)]), (CARRIED, [(8192, 512)])],
    ids=["stream", "product", "carried"],
)
def test_following_a_few_iterations_gives_the_time_of_all(
    body: str, shapes: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = [np.broadcast_to(np.zeros((), np.float32), shape) for shape in shapes]
    quick, full = followed_and_all(run(body, *inputs, mode="trace").trace, monkeypatch)
    assert quick.total == pytest.approx(full.total, rel=0.04)
    assert len(quick.end) == len(full.end) == full.followed
    assert quick.followed < full.followed / 3
    assert quick.busy == full.busy
    assert quick.total >= max(quick.busy.values())


def test_the_cost_follows_the_program_not_the_iterations() -> None:
    followed = []
    for rows in (8, 32, 96):
        x = np.broadcast_to(np.zeros((), np.float32), (rows * 128, 2048))
        plan = schedule(prepare(run(STREAM, x, mode="trace").trace.instructions, TRN1), TRN1)
        followed.append(plan.followed)
    assert followed[2] == followed[1] <= followed[0] * 1.5
