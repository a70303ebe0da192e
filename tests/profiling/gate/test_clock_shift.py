"""A week and a million calls at once: clocks and counts are moved on, wherever code keeps them, and nothing else is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from accelopt_profiling.gate.observe.clock_shift import CALLS, SECONDS, Clock, Counts
from accelopt_profiling.gate.observe.own_state import OwnState

#: Code whose ``call()`` moves a count on, and an expression for that count.
COUNTERS = {
    "a global": ("n = 0\ndef call():\n    global n\n    n += 1", "n"),
    "a global that goes down": ("n = 9\ndef call():\n    global n\n    n -= 1", "-n"),
    "a float": ("n = 0.0\ndef call():\n    global n\n    n = n + 0.25", "4 * n"),
    "a class": ("class C:\n    n = 0\ndef call():\n    C.n = C.n + 1", "C.n"),
    "an object": ("class C: pass\nc = C()\nc.n = 0\ndef call():\n    c.n += 1", "c.n"),
    "an object with slots": ("class C:\n    __slots__ = ['n']\nc = C()\nc.n = 0\ndef call():\n    c.n += 1", "c.n"),
    "a list": ("kept = [0]\ndef call():\n    kept[0] += 1", "kept[0]"),
    "a dictionary in an object": (
        "class C: pass\nc = C()\nc.kept = {'n': 0}\ndef call():\n    c.kept['n'] += 1", "c.kept['n']",
    ),
    "a default": ("def call(kept=[0]):\n    kept[0] += 1", "call.__defaults__[0][0]"),
    "an attribute of a function": ("def call():\n    call.n += 1\ncall.n = 0", "call.n"),
    "a closure": (
        "def make():\n    n = 0\n    def call():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return call\ncall = make()", "call()",
    ),
    "an array": ("import numpy as np\nn = np.zeros(1, np.int64)\ndef call():\n    n[0] += 1", "n[0]"),
    "bytes": (
        "n = bytearray(8)\ndef call():\n    n[:] = (int.from_bytes(n, 'little') + 1).to_bytes(8, 'little')",
        "int.from_bytes(n, 'little')",
    ),
    "an element of a large array": (
        "import numpy as np\nn = np.zeros(5000, np.int64)\ndef call():\n    n[77] += 1", "n[77]",
    ),
    "an endless count": ("import itertools\nturn = itertools.count(3)\ndef call():\n    return next(turn)", "call()"),
}  # fmt: skip

#: The same for what is used up rather than counted, and what holds in the end.
USED_UP = {
    "the length of a list": ("calls = []\ndef call():\n    calls.append(1)", "len(calls) > 10_000"),
    "a generator": (
        "def phases():\n    for _ in range(300): yield True\n    while True: yield False\n"
        "turn = phases()\ndef call():\n    return next(turn)", "call() is False",
    ),
    "an iterator": (
        "import itertools\nturn = itertools.chain(itertools.repeat(1, 99), itertools.repeat(0))\n"
        "def call():\n    return next(turn)", "call() == 0",
    ),
}  # fmt: skip

UNTOUCHED = {
    "a constant": ("BLOCK = 64\ndef call(): pass", "BLOCK == 64"),
    "a place in a ring": ("at = 0\ndef call():\n    global at\n    at = (at + 1) % 2", "at in (0, 1)"),
    "a table": ("table = {}\ndef call():\n    table['block'] = 128", "table == {'block': 128}"),
    "an endless cycle": (
        "import itertools\nturn = itertools.cycle([1, 2])\ndef call():\n    return next(turn)", "call() in (1, 2)",
    ),
}  # fmt: skip


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Any]:
    module = ModuleType("counted")
    module.__file__ = str(tmp_path / "counted.py")
    sys.modules["counted"] = module
    yield module
    del sys.modules["counted"]


def after_all_that(module: Any, text: str, root: Path) -> None:
    exec(text, vars(module))  # noqa: S102
    counts = Counts(OwnState(str(root)))
    for _ in range(3):
        module.call()
        counts.look()
    counts.advance()


@pytest.mark.parametrize("name", COUNTERS)
def test_counts_are_moved_on(loaded: Any, name: str, tmp_path: Path) -> None:
    text, count = COUNTERS[name]
    after_all_that(loaded, text, tmp_path)
    assert eval(count, vars(loaded)) > CALLS / 2  # noqa: S307


@pytest.mark.parametrize("name", [*USED_UP, *UNTOUCHED])
def test_what_is_used_up_and_what_stays(loaded: Any, name: str, tmp_path: Path) -> None:
    text, holds = {**USED_UP, **UNTOUCHED}[name]
    after_all_that(loaded, text, tmp_path)
    assert eval(holds, vars(loaded))  # noqa: S307


def test_only_the_candidates_own_numbers_move(loaded: Any, tmp_path: Path) -> None:
    other = ModuleType("other")
    other.__file__ = "/elsewhere/other.py"
    vars(other)["n"] = 0
    sys.modules["other"] = other
    try:
        after_all_that(loaded, "import other\ndef call():\n    other.n += 1", tmp_path)
        assert vars(other)["n"] == 3
    finally:
        del sys.modules["other"]


def test_clocks_are_moved_on_together(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["time", "monotonic", "perf_counter", "time_ns", "perf_counter_ns", "monotonic_ns"]
    for name in [*names, "process_time", "process_time_ns", "thread_time", "thread_time_ns"]:
        monkeypatch.setattr(time, name, getattr(time, name))  # so that it is put back
    clock = Clock()
    before = [getattr(time, name)() for name in names]
    clock.advance()
    for name, earlier in zip(names, before, strict=True):
        unit = 1e9 if name.endswith("_ns") else 1.0
        now = getattr(time, name)()
        assert type(now) is type(earlier)
        assert now - earlier >= SECONDS * unit
