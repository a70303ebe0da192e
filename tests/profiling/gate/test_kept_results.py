"""What a candidate keeps of its calls' data is overwritten; tables, counts and workspaces are left alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from accelopt_profiling.gate.observe.kept_results import KeptResults, turned
from accelopt_profiling.gate.observe.own_state import OwnState
from accelopt_profiling.gate.observe.process_state import CallerState

#: Code whose ``call(x)`` keeps something, and whether that comes from data.
KEEPING = {
    "a dictionary of results": ("kept = {}\ndef call(x):\n    kept[float(x.sum())] = x * 2", True),
    "the last result": ("class Last: pass\ndef call(x):\n    Last.result = x * 2", True),
    "bytes": ("kept = {}\ndef call(x):\n    kept[float(x.sum())] = x.tobytes()", True),
    "a list of numbers": ("kept = []\ndef call(x):\n    kept[:] = x.tolist()", True),
    "a bytearray": ("kept = bytearray(64)\ndef call(x):\n    kept[:] = x.tobytes()", True),
    "a table by shape": (
        "import numpy as np\nkept = {}\ndef call(x):\n    kept[x.shape] = np.arange(len(x))",
        False,
    ),
    "a count": ("n = 0.0\ndef call(x):\n    global n\n    n += 1", False),
    "nothing": ("def call(x): pass", False),
}


@pytest.fixture
def module(tmp_path: Path) -> Iterator[ModuleType]:
    keeping_module = ModuleType("keeping")
    keeping_module.__file__ = str(tmp_path / "keeping.py")
    sys.modules["keeping"] = keeping_module
    yield keeping_module
    del sys.modules["keeping"]


@pytest.mark.parametrize("code", KEEPING)
def test_what_comes_from_data_is_overwritten(module: ModuleType, tmp_path: Path, code: str) -> None:
    text, from_data = KEEPING[code]
    exec(text, module.__dict__)  # noqa: S102
    results, x = KeptResults(OwnState(str(tmp_path))), np.arange(8.0)
    for _ in range(2):
        module.call(x)
        results.look()
    module.call(turned([x.copy() + 1])[0])
    assert bool(results.overwrite()) is from_data


def test_elements_move_on_by_one_place() -> None:
    assert turned((np.arange(3.0), 7, [np.arange(3)]))[0].tolist() == [2.0, 0.0, 1.0]


CHANGES = {
    "random.seed(3)": "Python's random generator",
    "np.random.rand()": "NumPy's random generator",
    "torch.rand(1)": "torch's random generator",
    "gc.callbacks.append(print)": "callbacks",
    "torch.set_grad_enabled(not torch.is_grad_enabled())": "gradient mode",
    "np.seterr(all='ignore')": "handling of errors",
    "os.environ.__setitem__('PATH', '')": "environment",
    "sys.path.pop()": "sys.path",
    "os.environ.__setitem__('NEW', '1')": "",
    "sys.path.append('here')": "",
    "torch.Generator().manual_seed(3)": "",
    "np.random.default_rng(3).random()": "",
}


@pytest.mark.parametrize("statement", CHANGES)
def test_what_belongs_to_the_caller_is_compared(statement: str) -> None:
    import gc
    import os
    import random

    import torch

    grad, errors, path, environment = torch.is_grad_enabled(), np.geterr(), list(sys.path), dict(os.environ)
    caller = CallerState()
    try:
        with caller.around():
            eval(statement, {"random": random, "np": np, "torch": torch, "gc": gc, "os": os, "sys": sys})  # noqa: S307
        assert len(caller.changed) == bool(CHANGES[statement])
        assert all(CHANGES[statement] in change for change in caller.changed)
    finally:
        torch.set_grad_enabled(grad)
        np.seterr(**errors)
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)
        gc.callbacks[:] = [callback for callback in gc.callbacks if callback is not print]
