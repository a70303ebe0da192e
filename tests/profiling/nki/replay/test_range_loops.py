"""Python's ``range`` loops in kernels of today's dialect, replayed, leave what Python's own iterations leave.

Whatever a body does to Python's state is left to Python: ``LEFT_ALONE`` has one line for each way.
"""

# ruff: noqa: E501 - tables of loops, one a line

from __future__ import annotations

import linecache
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.replays import counted_replays, fields_of

from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.emulator.loop_recorder import LoopRecorder
from accelopt_profiling.nki.install import emulated

FILE = "range_loops_under_test.py"
HEAD = """\
import functools
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

told = []
memo = {"n": 0}


class Step:
    n = 0

    @property
    def next(self):
        self.n += 1
        return self.n - 1

    def type(self, i):
        self.n += 1
        return self.n - 1


step = Step()


def fetch(a, row):
    x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(x, a[row:row + 32, :])
    return x


def put(out, row, x):
    nisa.dma_copy(out[row:row + 32, :], x)


def twice(out, a):
    for i in range(6):
        x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(x, a[32 * i:32 * i + 32, :])
        nisa.tensor_scalar(x, x, nl.multiply, 2.0)
        nisa.dma_copy(out[32 * i:32 * i + 32, :], x)


@nki.jit
def kernel(a):
    out = nl.ndarray((192, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    s = nl.zeros((32, 96), dtype=nl.float32, buffer=nl.sbuf)
    t = nl.ndarray((32, 6, 96), dtype=nl.float32, buffer=nl.sbuf)
    p = nl.zeros((32, 96), dtype=nl.float32, buffer=nl.psum)
    kept, n, last = [], 0, None
"""
#: What most bodies begin and end with.
LOAD = (
    "x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf); nisa.dma_copy(x, a[32 * i:32 * i + 32, :])"
)
STORE = "nisa.dma_copy(out[32 * i:32 * i + 32, :], x)"
A = np.random.default_rng(5).standard_normal((192, 96), dtype=np.float32)


def run(body: str, mode: Any, replaying: bool) -> tuple[Any, ...]:
    """What a kernel leaves: every field of every instruction, findings, outputs, what it told, how it failed."""
    text = HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n    return out\n"
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    space: dict[str, Any] = {"__name__": "range_loops_under_test"}
    failed: Any = None
    result = None
    with emulated(mode, replaying=replaying) as emulation:
        exec(compile(text, FILE, "exec"), space)  # noqa: S102
        try:
            result = space["kernel"](A.copy())
        except KernelFaultError as error:
            failed = (error.code, error.line, error.message)
        except Exception as error:
            failed = (type(error), str(error))
        machine = emulation.machines[-1]
    values = None if result is None else np.asarray(result).tobytes()
    messages = [(type(item), item) for item in space["told"]]
    return fields_of(machine.trace.instructions), machine.findings, failed, values, messages


def both_ways(body: str) -> int:
    """Compare a kernel with and without replay, values and trace; how many iterations were replayed with values."""
    with counted_replays() as replays:
        fast = run(body, "full", replaying=True)
    assert fast == run(body, "full", replaying=False)
    assert run(body, "trace", replaying=True) == run(body, "trace", replaying=False)
    return len(replays)


#: Loops, and how many of their iterations are replayed.
REPLAYED: list[tuple[str, str, int]] = [
    ("rows", f"for i in range(6):\n    {LOAD}; {STORE}", 4),
    ("backwards", f"for i in range(5, -1, -1):\n    {LOAD}; {STORE}", 4),
    ("in steps", "for i in range(0, 192, 32):\n    x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf)\n    nisa.dma_copy(x, a[i:i + 32, :])\n    nisa.dma_copy(out[nl.ds(i, 32), :], x)", 4),
    ("nl's names for it", f"for i in nl.affine_range(6):\n    {LOAD}\n    for j in nl.sequential_range(4):\n        nisa.tensor_scalar(x, x, nl.add, 1.0)\n    {STORE}", 8),
    ("loops in loops", "for i in range(6):\n    for j in range(4):\n        x = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.sbuf)\n        nisa.dma_copy(x, a[32 * i:32 * i + 32, 24 * j:24 * j + 24])\n        nisa.dma_copy(out[32 * i:32 * i + 32, nl.ds(24 * j, 24)], x)", 8),
    ("a sum in PSUM that the first product begins", f"q = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.psum)\nfor i in range(6):\n    {LOAD}\n    nisa.nc_matmul(q, x[:, 0:32], x)\nfor i in range(6):\n    {LOAD}; nisa.tensor_copy(x, q)\n    {STORE}", 7),
    ("a sum in PSUM of each iteration", f"for i in range(6):\n    {LOAD}\n    q = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.psum)\n    for k in range(5):\n        nisa.nc_matmul(q, x[:, 0:32], x)\n    nisa.tensor_copy(x, q)\n    {STORE}", 8),
    ("a place that is written part by part", "for i in range(6):\n    nisa.dma_copy(t[:, i, :], a[32 * i:32 * i + 32, :])\nfor i in range(6):\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], t[:, 5 - i, :])", 8),
    ("views", "for i in range(6):\n    nisa.dma_copy(t.select(1, i), a.slice(0, 32 * i, 32 * i + 32))\nnisa.dma_copy(out[0:32, :], t[:, 3, :])\nfor i in range(6):\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], t[:, i, :])", 8),
    ("what is left", f"for i in range(6):\n    {LOAD}; {STORE}\ntold.append(i)\nnisa.dma_copy(out[0:32, :], x)", 4),
    ("a function of the same file with a loop", "twice(out, a)", 4),
    ("a condition in the middle", f"for i in range(6):\n    {LOAD}\n    if i < 3:\n        nisa.tensor_scalar(x, x, nl.add, 1.0)\n    {STORE}", 2),
    ("a name of one iteration of an inner loop", f"for i in range(6):\n    {LOAD}; {STORE}\n    for j in range(3 - i):\n        last = i + j\ntold.append(last)", 1),
    ("numbers that are kept", f"rows = []\nfor i in range(6):\n    row = 32 * i\n    {LOAD}; {STORE}\nrows.append(row)\ntold.append(rows)", 4),
]  # fmt: skip

#: Loops that Python has to run iteration by iteration.
LEFT_ALONE: list[tuple[str, str]] = [
    ("a list", f"for i in range(6):\n    {LOAD}; kept.append(x)\nfor i in (0, 1, 2, 3, 4, 5):\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], kept[5 - i])"),
    ("a list's place", f"kept.extend([0, 0])\nfor i in range(6):\n    {LOAD}; {STORE}; kept[0] = kept[0] + 1\ntold.append(kept[0])"),
    ("a dictionary", f"for i in range(6):\n    {LOAD}; {STORE}; memo['n'] = memo['n'] + i\ntold.append(memo['n'])"),
    ("an attribute", f"for i in range(6):\n    {LOAD}; {STORE}; step.n = step.n + i\ntold.append(step.n)"),
    ("a property with a memory", "for i in range(6):\n    k = step.next\n    x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf); nisa.dma_copy(x, a[32 * k:32 * k + 32, :])\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], x)"),
    ("a method named as a tensor's", "for i in range(6):\n    k = step.type(i)\n    x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf); nisa.dma_copy(x, a[32 * k:32 * k + 32, :])\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], x)"),
    ("a number from before", f"for i in range(6):\n    {LOAD}; {STORE}\n    n += i\ntold.append(n)"),
    ("a tile from the iteration before", "x = fetch(a, 0)\nfor i in range(6):\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], x)\n    x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf); nisa.dma_copy(x, a[32 * i:32 * i + 32, :])"),
    ("two tiles in turns", "x, y = fetch(a, 0), fetch(a, 32)\nfor i in range(6):\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], x)\n    x, y = y, x"),
    ("prints", f"for i in range(6):\n    {LOAD}; {STORE}\n    print(i)"),
    ("a text", f"for i in range(6):\n    x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf, name=f'tile{{i}}'); nisa.dma_copy(x, a[32 * i:32 * i + 32, :])\n    {STORE}"),
    ("an early end", f"for i in range(6):\n    {LOAD}; {STORE}\n    if i == 3:\n        break\ntold.append(i)"),
    ("a return", f"for i in range(6):\n    {LOAD}; {STORE}\n    if i == 3:\n        return out"),
    ("an else", f"for i in range(6):\n    {LOAD}; {STORE}\nelse:\n    told.append(i)"),
    ("even and odd", f"for i in range(6):\n    {LOAD}\n    if i % 2:\n        nisa.tensor_scalar(x, x, nl.add, 1.0)\n    {STORE}"),
    ("the number in an instruction", f"for i in range(6):\n    {LOAD}\n    nisa.tensor_scalar(x, x, nl.multiply, i)\n    {STORE}"),
    ("the number as a scale", f"for i in range(6):\n    {LOAD}\n    nisa.activation(x, nl.exp, x, scale=0.1 * i)\n    {STORE}"),
    ("the number as a fill", f"for i in range(6):\n    x = nl.full((32, 96), i, dtype=nl.float32); {STORE}"),
    ("the number in a pattern", f"for i in range(6):\n    {LOAD}\n    nisa.iota(x, [[1, 96]], offset=i, channel_multiplier=0)\n    {STORE}"),
    ("a size", "for i in range(1, 7):\n    x = nl.ndarray((32, 16 * i), dtype=nl.float32, buffer=nl.sbuf); nisa.dma_copy(x, a[0:32, 0:16 * i])\n    nisa.dma_copy(out[32 * i - 32:32 * i, 0:16 * i], x)"),
    ("a function of the same file", "for i in range(6):\n    put(out, 32 * i, fetch(a, 32 * i))"),
    ("a generator", f"for i in (k for k in range(6)):\n    {LOAD}; {STORE}"),
    ("reversed", f"for i in reversed(range(6)):\n    {LOAD}; {STORE}"),
    ("enumerate", f"for i, k in enumerate(range(6)):\n    {LOAD}; {STORE}"),
    ("another range", f"range = lambda n: iter((5, 4, 3, 2, 1, 0))\nfor i in range(6):\n    {LOAD}; {STORE}\n    told.append(i)"),
    ("a comprehension", "for i in range(6):\n    xs = [fetch(a, 32 * i) for k in range(2)]\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], xs[1])"),
    ("an attempt", f"for i in range(6):\n    try:\n        {LOAD}; {STORE}\n        told.append(1 // (i - 2))\n    except ZeroDivisionError:\n        told.append(i)"),
    ("a name of one iteration", f"for i in range(6):\n    {LOAD}; {STORE}\n    if i == 0:\n        last = i\ntold.append(last)"),
    ("registers", f"r = nisa.register_alloc(1)\nfor i in range(6):\n    {LOAD}; {STORE}\n    for j in nl.dynamic_range(r):\n        nisa.tensor_scalar(x, x, nl.add, 1.0)\n    nisa.register_move(r, 2)\n    {STORE}"),
    ("a global name", f"global memory\nmemory = 0\nfor i in range(6):\n    {LOAD}; {STORE}\n    memory = memory + i\ntold.append(memory)"),
    ("a walrus", f"for i in range(6):\n    {LOAD}; {STORE}\n    (n := n + i)\ntold.append(n)"),
    ("deletion", f"kept.extend([1, 2, 3, 4, 5, 6])\nfor i in range(6):\n    {LOAD}; {STORE}\n    del kept[0]\ntold.append(len(kept))"),
    ("a lambda", f"for i in range(6):\n    {LOAD}; {STORE}\n    kept = [*kept, lambda: i]\ntold.append([f() for f in kept])"),
    ("fori_loop", "def body(i):\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], fetch(a, 32 * i))\nnl.fori_loop(0, 6, body)"),
    ("its type", f"for i in range(6):\n    k = i if type(i) is int else 0\n    {LOAD}\n    nisa.dma_copy(out[32 * k:32 * k + 32, :], x)"),
    ("whether it is a number", f"for i in range(6):\n    k = i if isinstance(i, int) else 0\n    {LOAD}\n    nisa.dma_copy(out[32 * k:32 * k + 32, :], x)"),
    ("few", f"for i in range(2):\n    {LOAD}; {STORE}"),
]  # fmt: skip

#: Loops in which something goes wrong, in the first, in a later or in the last iteration.
WRONG: list[tuple[str, str]] = [
    ("beyond the end", "for i in range(7):\n    x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf); nisa.dma_copy(x, a[32 * i:32 * i + 32, :])"),
    ("an access pattern beyond the end", "for i in range(7):\n    x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf)\n    nisa.dma_copy(x, a.ap([[96, 32], [1, 96]], offset=3072 * i))"),
    ("an access pattern before the beginning", "for i in range(4):\n    x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf)\n    nisa.dma_copy(x, a.ap([[96, 32], [1, 96]], offset=3072 * (2 - i)))"),
    ("beyond the end, caught", f"try:\n    for i in range(7):\n        {LOAD}; {STORE}\nexcept Exception as error:\n    told.append(str(error))"),
    ("read before it was written", "for i in range(4):\n    nisa.dma_copy(t[:, i, :], a[32 * i:32 * i + 32, :])\nfor i in range(6):\n    nisa.dma_copy(out[32 * i:32 * i + 32, :], t[:, i, :])"),
    ("no operator of a counter", f"for i in range(6):\n    {LOAD}\n    k = ~i\n    nisa.dma_copy(out[32 * (-1 - k):32 * (-1 - k) + 32, :], x)"),
    ("no attribute of a counter", f"for i in range(6):\n    k = i.real\n    {LOAD}; {STORE}"),
    ("no operator of a counter, caught", f"try:\n    for i in range(6):\n        k = ~i\n        {LOAD}; {STORE}\nexcept TypeError as error:\n    told.append(str(error))"),
    ("the kernel's own check", f"for i in range(6):\n    {LOAD}; {STORE}\n    assert i < 4, 'too many'"),
    ("a division", f"for i in range(6):\n    {LOAD}; {STORE}\n    k = 1 // (4 - i)"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "replayed"), [pytest.param(b, n, id=name) for name, b, n in REPLAYED])
def test_a_loop_over_range_is_replayed(body: str, replayed: int) -> None:
    assert both_ways(body) == replayed


@pytest.mark.parametrize("body", [pytest.param(b, id=name) for name, b in LEFT_ALONE])
def test_a_loop_with_state_in_python_is_run_by_python(body: str) -> None:
    assert both_ways(body) == 0


@pytest.mark.parametrize("body", [pytest.param(b, id=name) for name, b in WRONG])
def test_what_goes_wrong_is_reported_as_without_replay(body: str) -> None:
    both_ways(body)


def test_a_loop_in_another_file_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD[: HEAD.index("@nki.jit")].replace("def twice(out, a):", "def from_elsewhere(out, a):")
    (tmp_path / "loops_elsewhere.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert both_ways("import loops_elsewhere\nloops_elsewhere.from_elsewhere(out, a)") == 0
        body = "from_elsewhere(out, a)"
        monkeypatch.setattr(
            sys.modules[__name__], "HEAD", "from loops_elsewhere import from_elsewhere\n" + HEAD
        )
        assert both_ways(body) == 4
    finally:
        sys.modules.pop("loops_elsewhere", None)


def test_a_loop_that_is_recorded_in_vain_is_soon_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    begin = LoopRecorder.begin

    def beginning(self: LoopRecorder, loop: Any) -> None:
        begun.append(loop.count)
        begin(self, loop)

    monkeypatch.setattr(LoopRecorder, "begin", beginning)
    body = f"sizes = [1, 2, 3, 4, 5]\nfor k in nl.affine_range(2):\n  for m in nl.affine_range(4):\n    for i in range(5):\n        {LOAD}; nisa.dma_copy(out[0:sizes[i], :], x[0:sizes[i], :])"
    run(body, "trace", replaying=True)
    assert begun.count(5) == 9, "three iterations in each of three passes"
    both_ways(body)


def test_code_that_is_not_its_files_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was written again since it was loaded says nothing of the code that runs."""
    body = f"for i in range(6):\n    {LOAD}; {STORE}"
    monkeypatch.setattr(linecache, "getlines", lambda file: [HEAD + "    for i in range(6):\n        pass\n"])
    assert both_ways(body) == 0


INDICES = ["i", "2 * i", "i + 1", "5 - i", "i * 3 - i", "i // 2", "i % 3", "min(i, 3)", "max(i - 2, 0)", "(i + 1) // 1"]  # fmt: skip
STATEMENTS = [
    "nisa.dma_copy(t[:, ({x}) % 6, :], a[16 * (({y}) % 11):16 * (({y}) % 11) + 32, :])",
    "nisa.dma_copy(t[:, ({x}) % 6, 4 * ({y}):4 * ({y}) + 8], a[0:32, 0:8])",
    "nisa.tensor_scalar(s[:, 8 * ({x}):8 * ({x}) + 8], s[:, 4 * ({y}):4 * ({y}) + 8], nl.add, 0.25)",
    "nisa.nc_matmul(p, s[:, 0:32], s)",
    "nisa.nc_matmul(q[:, 8 * ({x}):8 * ({x}) + 8], s[:, 0:32], s[:, 8 * ({y}):8 * ({y}) + 8])",
    "q = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.psum)",
    "x = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.sbuf); nisa.tensor_copy(x, s); nisa.tensor_scalar(s, x, nl.multiply, 0.5)",
    "nisa.dma_copy(t.ap([[576, 32], [1, 8]], offset=8 * ({x})), a.ap([[96, 32], [2, 8]], offset=64 * ({y})))",
    "nisa.tensor_copy(x, s); nisa.tensor_copy(s[:, 0:8], x[:, 8 * ({x}):8 * ({x}) + 8])",
    "if {x} > {y}: nisa.activation(s, nl.tanh, s)",
    "if {x} == {y}: last = {x}",
    "n = {x} + {y}",
    "n = n + {x}; told.append(n)",
    "nisa.tensor_scalar(s, s, nl.add, 0.5 * ({x}))",
    "for k in range(4): nisa.dma_copy(out[16 * (({x}) % 11):16 * (({x}) % 11) + 32, 24 * k:24 * k + 24], s[:, 24 * (3 - k):24 * (3 - k) + 24])",
    "for k in range({x}): nisa.tensor_scalar(s[:, 8 * k:8 * k + 8], s[:, 0:8], nl.add, 1.0)",
    "nisa.activation_reduce(s, nl.copy, s, reduce_op=nl.add, reduce_res=t[:, 0, ({x}) % 6:({x}) % 6 + 1])",
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(INDICES), st.sampled_from(INDICES)),
        min_size=1,
        max_size=5,
    ),
    st.integers(3, 6),
    st.booleans(),
)
def test_any_loop_gives_the_same(statements: list[tuple[str, str, str]], count: int, around: bool) -> None:
    lines = [text.format(x=x, y=y) for text, x, y in statements]
    loop = f"for i in range({count}):\n" + "\n".join(f"    {line}" for line in lines)
    if around:
        loop = "for m in range(4):\n" + textwrap.indent(loop, "    ")
    start = "x = s\nq = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.psum)\n"
    end = "\ntold.append((i, n, last))\nfor j in range(6):\n    nisa.dma_copy(out[32 * j:32 * j + 32, :], s)"
    both_ways(f"{start}{loop}{end}")
