"""Loops replayed from one recorded iteration leave the same instructions, findings and values as Python's iterations."""

# ruff: noqa: E501 - tables of loops, one a line

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.nki_source import Outcome, run
from support.replays import counted_replays, fields_of

from accelopt_profiling.nki.data.loop_counter import LoopCounter, RecordedLoop, at_least_zero, is_zero
from accelopt_profiling.nki.emulator.loop_recorder import LoopRecorder
from accelopt_profiling.nki.replay import loop_replay

A = np.random.default_rng(3).standard_normal((192, 96), dtype=np.float32)

HEAD = """
out = nl.ndarray((192, 96), dtype=np.float32, buffer=nl.shared_hbm)
t = nl.ndarray((6, nl.par_dim(32), 96), dtype=np.float32, buffer=nl.sbuf)
s = nl.zeros((nl.par_dim(32), 96), dtype=np.float32, buffer=nl.sbuf)
p = nl.zeros((6, nl.par_dim(32), 96), dtype=np.float32, buffer=nl.psum)
r, c = nl.arange(32)[:, None], nl.arange(96)[None, :]
kept = []
"""


def both_ways(body: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Outcome]:
    """Run a body with and without replay and compare; how many iterations were replayed, and the outcome."""
    with counted_replays() as replays:
        fast = run(body, A)
    with monkeypatch.context() as patch:
        patch.setattr(loop_replay, "is_replayable", lambda frame: False)
        slow = run(body, A)
    assert fields_of(fast.trace.instructions) == fields_of(slow.trace.instructions)
    assert fast.findings == slow.findings
    assert (fast.fault and (fast.fault.code, fast.fault.line)) == (
        slow.fault and (slow.fault.code, slow.fault.line)
    )
    if slow.fault is None:
        np.testing.assert_array_equal(fast.result, slow.result)
    return len(replays), fast


#: Loops, and how many of their iterations are replayed.
LOOPS: list[tuple[str, str, int]] = [
    (
        "rows",
        "for i in nl.affine_range(6):\n    nl.store(out[32 * i + r, c], nl.exp(nl.load(a[32 * i + r, c])))",
        4,
    ),
    (
        "slices",
        "for i in nl.affine_range(6):\n    nl.store(out[i * 32:(i + 1) * 32], nl.load(a[i * 32:i * 32 + 32]))",
        4,
    ),
    (
        "nl.ds",
        "for i in nl.affine_range(6):\n    nl.store(out[nl.ds(i * 32, 32), :], nl.load(a[nl.ds(i * 32, 32), :]))",
        4,
    ),
    (
        "backwards",
        "for i in nl.affine_range(5, -1, -1):\n    nl.store(out[32 * i + r, c], nl.load(a[32 * i + r, c]))",
        4,
    ),
    (
        "block dimensions",
        "for i in nl.affine_range(6):\n    t[i, r, c] = nl.load(a[32 * i + r, c])\n"
        "for i in nl.affine_range(6):\n    nl.store(out[32 * (5 - i) + r, c], t[5 - i])",
        8,
    ),
    (
        "accumulation",
        "for i in nl.affine_range(6):\n    x = nl.load(a[32 * i + r, c])\n    p[0, r, c] += nisa.nc_matmul(x[:, 0:32], x)\n"
        "for i in nl.affine_range(6):\n    nl.store(out[32 * i + r, c], nl.copy(p[0]))",
        8,
    ),
    (
        "sum of a name",
        "for i in nl.sequential_range(6):\n    s += nl.load(a[32 * i + r, c])\n"
        "    nl.store(out[32 * i + r, c], nl.multiply(s, 1.0))",
        4,
    ),
    (
        "loops in loops",
        "for i in nl.affine_range(6):\n    for j in nl.affine_range(4):\n        for k in nl.affine_range(3):\n"
        "            x = nl.load(a[32 * i + r, 24 * j + 8 * k + nl.arange(8)[None, :]])\n"
        "            nl.store(out[32 * i + r, 24 * j + 8 * k + nl.arange(8)[None, :]], nl.square(x))",
        12,
    ),
    (
        "arrays of an iteration",
        "for i in nl.affine_range(6):\n    y = nl.ndarray((3, nl.par_dim(32), 32), dtype=np.float32, buffer=nl.sbuf)\n"
        "    z = nl.zeros((nl.par_dim(32), 96), dtype=np.float32, buffer=nl.sbuf)\n    for k in nl.affine_range(3):\n"
        "        y[k] = nl.load(a[32 * i + r, 32 * k + nl.arange(32)[None, :]])\n"
        "        z[r, 32 * k + nl.arange(32)[None, :]] = nl.copy(y[k])\n    nl.store(out[32 * i + r, c], z)",
        6,
    ),
    (
        "the first iteration is special",
        "for i in nl.affine_range(6):\n    t[0, r, c] = nl.loop_reduce(nl.load(a[32 * i + r, c]), op=np.max, "
        "loop_indices=[i])\n    nl.store(out[32 * i + r, c], t[0])",
        3,
    ),
    (
        "a condition in the middle",
        "for i in nl.affine_range(6):\n    x = nl.load(a[32 * i + r, c])\n    if i < 3:\n        x = nl.exp(x)\n"
        "    nl.store(out[32 * i + r, c], x)",
        2,
    ),
    (
        "a mask that cuts the last iteration",
        "for i in nl.affine_range(7):\n    x = nl.load(a[30 * i + r, c], mask=30 * i + r < 192)\n"
        "    nl.store(out[30 * i + r, c], x, mask=30 * i + r < 192)",
        4,
    ),
    (
        "what the last iteration left",
        "for i in nl.affine_range(6):\n    x = nl.load(a[32 * i + r, c])\n    nl.store(out[32 * i + r, c], x)\n"
        "nl.store(out[32 * (i - 5) + r, c], x)",
        4,
    ),
]

#: Loops that Python has to run iteration by iteration, or that go wrong in one of them.
LEFT_ALONE: list[tuple[str, str]] = [
    ("a number from before", "n = 0\nfor i in nl.affine_range(6):\n    nl.store(out[32 * n + r, c], nl.load(a[32 * n + r, c]))\n    n += 1"),
    ("a list", "for i in nl.affine_range(6):\n    kept.append(nl.load(a[32 * i + r, c]))\nfor i in nl.affine_range(6):\n    nl.store(out[32 * i + r, c], kept[i])"),
    ("a tile from before", "x = nl.load(a[r, c])\nfor i in nl.affine_range(6):\n    nl.store(out[32 * i + r, c], x)\n    x = nl.load(a[32 * i + r, c])"),
    ("a list's place", "kept.extend([0, 0])\nfor i in nl.affine_range(6):\n    kept[0] = kept[0] + 1\n    nl.store(out[32 * i + r, c], nl.multiply(nl.load(a[32 * i + r, c]), float(kept[0])))"),
    ("a function with a memory", "def step(i):\n    kept.append(i)\n    return len(kept) - 1\nfor i in nl.affine_range(6):\n    nl.store(out[32 * step(i) + r, c], nl.load(a[32 * i + r, c]))"),
    ("another file's function", "it = iter(range(6))\nfor i in nl.affine_range(6):\n    n = next(it)\n    nl.store(out[32 * n + r, c], nl.load(a[32 * i + r, c]))"),
    ("an end in the middle", "for i in nl.affine_range(6):\n    if i == 4:\n        break\n    nl.store(out[32 * i + r, c], nl.load(a[32 * i + r, c]))"),
    ("even and odd", "for i in nl.affine_range(6):\n    nl.store(out[32 * i + r, c], nl.load(a[32 * (i // 2) + r, c]))"),
    ("the number itself", "for i in nl.affine_range(6):\n    nl.store(out[32 * i + r, c], nl.multiply(nl.load(a[32 * i + r, c]), i * 0.5))"),
    *[
        (f"the number itself in {value}", f"for i in nl.affine_range(6):\n    nl.store(out[32 * i + r, c], {value.format(x='nl.load(a[32 * i + r, c])')})")
        for value in (
            "nl.multiply({x}, i)", "{x} + (i + 1)", "nisa.tensor_scalar({x}, nl.multiply, i + 2)", "nl.add({x}, nl.add(i, 1))",
            "nisa.activation(nl.exp, {x}, scale=2 * i)", "nisa.memset((32, 96), i, np.float32)", "i",
            "nl.full((32, 96), i, dtype=np.float32, buffer=nl.sbuf)", "nisa.iota(i + c + 0 * r, np.float32)",
            "nisa.affine_select(pred=(r + c > 9), on_true_tile={x}, on_false_value=i)",
        )
    ],
    ("its text", "for i in nl.affine_range(6):\n    x = nl.ndarray((32, 96), dtype=np.float32, buffer=nl.sbuf, name=f'tile {i}')\n    x[...] = nl.load(a[32 * i + r, c])\n    nl.store(out[32 * i + r, c], x)"),
    ("its type", "for i in nl.affine_range(6):\n    n = i if type(i) is int else 0\n    nl.store(out[32 * n + r, c], nl.load(a[32 * n + r, c]))"),
    ("whether it is a number", "for i in nl.affine_range(6):\n    n = i if isinstance(i, int) else 0\n    nl.store(out[32 * n + r, c], nl.load(a[32 * n + r, c]))"),
    ("an object with a memory", "class Step:\n    n = -1\n    def __getitem__(self, i):\n        self.n += 1\n        return self.n\nstep = Step()\nfor i in nl.affine_range(6):\n    nl.store(out[32 * step[0] + r, c], nl.load(a[32 * i + r, c]))"),
    ("a method of its own", "class Step:\n    n = -1\n    def type(self, i):\n        self.n += 1\n        return self.n\nstep = Step()\nfor i in nl.affine_range(6):\n    nl.store(out[32 * step.type(0) + r, c], nl.load(a[32 * i + r, c]))"),
    ("a comprehension", "for i in nl.affine_range(6):\n    xs = [nl.load(a[32 * i + r, 48 * k + nl.arange(48)[None, :]]) for k in range(2)]\n    nl.store(out[32 * i + r, 0:48], xs[0])\n    nl.store(out[32 * i + r, 48:96], xs[1])"),
]  # fmt: skip

#: Loops in which a later iteration goes wrong.
WRONG: list[tuple[str, str, str]] = [
    ("beyond the end", "for i in nl.affine_range(7):\n    nl.store(out[32 * i + r, c], nl.load(a[32 * i + r, c]))", "out-of-bounds"),
    ("beyond the blocks", "for i in nl.affine_range(7):\n    t[i, r, c] = nl.load(a[r, c])", "out-of-bounds"),
    (
        "read before it was written",
        "for i in nl.affine_range(4):\n    t[i, r, c] = nl.load(a[32 * i + r, c])\n"
        "for i in nl.affine_range(6):\n    nl.store(out[32 * i + r, c], nl.copy(t[i]))",
        "uninitialised-read",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "repeated"), [pytest.param(b, n, id=name) for name, b, n in LOOPS])
def test_a_loop_is_replayed(body: str, repeated: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert both_ways(f"{HEAD}{body}\nreturn out", monkeypatch)[0] == repeated


@pytest.mark.parametrize("body", [pytest.param(b, id=name) for name, b in LEFT_ALONE])
def test_what_differs_between_iterations_is_left_to_python(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert both_ways(f"{HEAD}{body}\nreturn out", monkeypatch)[0] == 0


@pytest.mark.parametrize(("body", "code"), [pytest.param(b, code, id=name) for name, b, code in WRONG])
def test_violations_in_later_iterations_are_reported(
    body: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = both_ways(f"{HEAD}{body}\nreturn out", monkeypatch)[1]
    codes = [finding.code for finding in outcome.findings] + ([outcome.fault.code] if outcome.fault else [])
    assert code in codes


def test_an_iteration_that_differs_from_the_recording_runs_the_kernel_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the reading of a body's text overlooks, the comparison with the last iteration finds."""
    body = "n = 0\nfor i in nl.affine_range(6):\n    nl.store(out[32 * n + r, c], nl.load(a[32 * i + r, c]))\n    n += 1"
    monkeypatch.setattr(loop_replay, "is_replayable", lambda frame: True)
    outcome = run(f"{HEAD}{body}\nreturn out", A)
    np.testing.assert_array_equal(outcome.result, A)
    assert len([i for i in outcome.trace.instructions if i.opcode == "store"]) == 6


LEAVES = """
try:
    for i in nl.affine_range(6):
        nl.store(out[64 * i + r, c], nl.load(a[32 * i + r, c]))
except BaseException as error:
    kept.append(error)
"""  # the fourth iteration is out of bounds


def test_a_loop_that_was_left_is_recorded_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[RecordedLoop] = []
    end = LoopRecorder.end

    def ending(self: LoopRecorder, loop: RecordedLoop) -> None:
        end(self, loop)
        ends.append(loop)
        assert loop not in self.loops

    monkeypatch.setattr(LoopRecorder, "end", ending)
    body = f"{LEAVES}kept.clear()\nfor i in nl.affine_range(6):\n    nl.store(out[32 * i + r, c], nl.load(a[32 * i + r, c]))"
    outcome = run(f"{HEAD}{body}\nreturn out", A)
    assert outcome.fault is not None, "a compiler's error stands, whoever catches it"
    assert len(ends) == 5, (
        "a recorded iteration, a compared one, and the one that was left; then the other loop's two"
    )


def test_a_kernel_that_hides_the_difference_and_then_fails_runs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = """
n = 0
try:
    for i in nl.affine_range(6):
        nl.store(out[32 * n + r, c], nl.load(a[32 * i + r, c]))
        n += 1
except BaseException:
    raise ValueError("n")
"""
    monkeypatch.setattr(loop_replay, "is_replayable", lambda frame: True)
    outcome = run(f"{HEAD}{body}\nreturn out", A)
    assert outcome.fault is None
    np.testing.assert_array_equal(outcome.result, A)


INDICES = [
    "i",
    "2 * i",
    "i + 1",
    "5 - i",
    "i * 3 - i",
    "i // 2",
    "i % 3",
    "min(i, 3)",
    "max(i - 2, 0)",
    "(i + 1) // 1",
]
STATEMENTS = [
    "t[({x}) % 6, r, c] = nl.load(a[16 * ({y}) + r, c], mask=16 * ({y}) + r < 192)",
    "s[r, 8 * ({x}):8 * ({x}) + 8] = nl.exp(s[r, 4 * ({y}):4 * ({y}) + 8])",
    "p[1, r, c] += nisa.nc_matmul(s[:, 0:32], s)",
    "x = nl.copy(s); s[...] = nl.add(x, 0.25)",
    "s[r, c] = nl.multiply(s, 0.5, mask=c < 8 * ({x}))",
    "if {x} > {y}: s[...] = nl.tanh(s)",
    "for k in nl.affine_range(4): nl.store(out[16 * ({x}) + r, 24 * k + nl.arange(24)[None, :]], s[r, 24 * k + nl.arange(24)[None, :]], mask=16 * ({x}) + r < 192)",
    "q = nl.load(a[16 * ({x}) + r, c], mask=16 * ({x}) + r < 192); s[...] = nl.add(s, nl.minimum(q, 1.0))",
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(INDICES), st.sampled_from(INDICES)),
        min_size=1,
        max_size=4,
    ),
    st.integers(3, 6),
)
def test_any_loop_gives_the_same(statements: list[tuple[str, str, str]], count: int) -> None:
    lines = [text.format(x=x, y=y) for text, x, y in statements]
    body = f"for i in nl.affine_range({count}):\n" + "\n".join(f"    {line}" for line in lines)
    store = "\nfor j in nl.affine_range(6):\n    nl.store(out[32 * j + r, c], nl.add(s, p[1]))\nreturn out"
    both_ways(f"{HEAD}{body}{store}", pytest.MonkeyPatch())


@given(st.integers(-40, 40), st.integers(-7, 7).filter(bool), st.integers(1, 12))
def test_a_loop_learns_until_when_an_answer_holds(value: int, step: int, count: int) -> None:
    for question, ask in ((lambda n: n >= 0, at_least_zero), (lambda n: n == 0, is_zero)):
        loop = RecordedLoop(0, count, 0)
        answer = ask(value, ((loop, step),))
        assert answer == question(value)
        until = next((k for k in range(count) if question(value + step * k) != answer), count)
        assert loop.until == until if ask is at_least_zero else 0 < loop.until <= until


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9))
def test_a_counter_computes_as_a_number_does(value: int, other: int, step: int) -> None:
    def counter() -> LoopCounter:
        return LoopCounter(value, ((RecordedLoop(0, 5, 0), step),))

    assert (counter() + other).value == (other + counter()).value == value + other
    assert (counter() - other).value == value - other
    assert (other - counter()).value == other - value
    for name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        assert getattr(counter(), name)(other) == getattr(value, name)(other)
    if other:
        assert counter() // other == value // other
        assert other % (abs(value) + 1) == other % (abs(counter()) + 1)
    assert [10, 20, 30][counter() % 3] == [10, 20, 30][value % 3]
    assert f"{counter():3d}" == f"{value:3d}"
    assert counter() * 0.5 == value * 0.5
    assert np.array_equal(np.arange(3) + counter(), np.arange(3) + value)
    assert counter() != "text"
