"""Compare the state of the process that belongs to whoever calls a kernel: generators, modes, hooks, settings."""

from __future__ import annotations

import gc
import hashlib
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_HOOKS = ("excepthook", "displayhook", "unraisablehook", "stdin", "stdout", "stderr")
_LISTS = ("meta_path", "path_hooks", "path")
_GROWING = ("the environment", "sys.meta_path", "sys.path_hooks", "sys.path")


class CallerState:
    """Collects in ``changed`` what calls leave changed, in words. Enter ``around`` for each call."""

    def __init__(self) -> None:
        self.changed: set[str] = set()

    @contextmanager
    def around(self) -> Iterator[None]:
        before = _state()
        try:
            yield
        finally:
            after = _state()
            self.changed |= {
                name for name, value in before.items() if not _kept(name, value, after.get(name))
            }


def _kept(name: str, before: Any, after: Any) -> bool:
    """Check whether a part of the state is as it was. Libraries that are imported late add to some of it."""
    if name in _GROWING and isinstance(before, dict):
        return all(after.get(key) == value for key, value in before.items())
    if name in _GROWING:
        return set(before) <= set(after)
    return bool(before == after)


def _state() -> dict[str, Any]:
    state: dict[str, Any] = {
        "the state of Python's random generator": random.getstate(),
        "the state of NumPy's random generator": _of_numpy(),
        "NumPy's handling of errors": np.geterr(),
        "the garbage collector's callbacks": [id(callback) for callback in gc.callbacks],
        "the garbage collector's settings": (gc.isenabled(), gc.get_threshold()),
        "the environment": dict(os.environ),
        "the working folder": os.getcwd(),
        "the recursion limit": sys.getrecursionlimit(),
        "the thread switching interval": sys.getswitchinterval(),
        "what handles signals": [id(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)],
        "the trace functions": (id(sys.gettrace()), id(sys.getprofile())),
        "what threads do about errors": id(threading.excepthook),
    }  # fmt: skip
    state |= {f"sys.{name}": id(getattr(sys, name, None)) for name in _HOOKS}
    state |= {f"sys.{name}": list(map(id, getattr(sys, name))) for name in _LISTS}
    torch = sys.modules.get("torch")
    if torch is not None:
        with torch._C.DisableTorchFunction():  # what looks at calls of torch shall not see this one
            drawn = hashlib.sha256(torch.random.get_rng_state().numpy().tobytes()).digest()
        state |= {
            "the state of torch's random generator": drawn,
            "torch's default dtype": torch.get_default_dtype(),
            "torch's gradient mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
            "torch's anomaly mode": torch.is_anomaly_enabled(),
            "torch's autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
            "torch's deterministic mode": torch.are_deterministic_algorithms_enabled(),
            "torch's number of threads": torch.get_num_threads(),
            "torch's precision of products": torch.get_float32_matmul_precision(),
            "torch's function modes": torch._C._len_torch_function_stack(),
        }
    return state


def _of_numpy() -> Any:
    state: Any = np.random.get_state(legacy=False)
    inner = dict(state["state"])
    inner["key"] = inner["key"].tobytes() if hasattr(inner.get("key"), "tobytes") else inner.get("key")
    return state["bit_generator"], inner, state.get("has_gauss")
