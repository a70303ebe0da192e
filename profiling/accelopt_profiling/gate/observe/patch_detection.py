"""Detect monkeypatching: functions and classes of shared modules that were replaced since a snapshot."""

from __future__ import annotations

import functools
import sys
from itertools import repeat
from operator import is_
from types import ModuleType
from typing import Any

#: Modules whose functions a candidate might replace; those not imported are passed over.
_MODULES = (
    "builtins", "os", "sys", "io", "json", "math", "time", "random", "statistics", "threading", "functools", "hashlib",
    "itertools", "operator", "gc", "inspect", "signal",
    "numpy", "numpy.random", "numpy.linalg", "numpy.testing", "ml_dtypes",
    "torch", "torch.cuda", "torch.nn.functional", "torch.testing", "torch.random", "torch.linalg", "torch.utils",
    "torch.autograd", "torch.nn",
    "triton", "triton.language", "triton.language.core", "triton.language.math", "triton.language.standard",
    "triton.testing", "triton.runtime", "triton.runtime.jit", "triton.runtime.autotuner", "triton.runtime.driver",
    "triton.compiler", "neuronxcc.nki", "neuronxcc.nki.language", "neuronxcc.nki.isa",
)  # fmt: skip
_OURS = "accelopt_profiling."
_ABSENT = object()
#: Names that hold state of a module itself.
_STATE = frozenset(
    ["_", "last_value", "last_type", "last_traceback", "last_exc", "ps1", "ps2", "__warningregistry__"]
)


class SharedObjects:
    """A snapshot of what shared modules and classes hold.

    ``changes`` names what was replaced or removed since.
    """

    def __init__(self) -> None:
        self._before = dict(_owners())
        self._held = {name: dict(vars(owner)) for name, owner in self._before.items()}

    def changes(self) -> list[str]:
        changes: list[str] = []
        for name, owner in self._before.items():
            now, held = vars(owner), self._held[name]
            same = all(map(is_, held.values(), map(now.get, held, repeat(_ABSENT))))
            if same and len(now) == len(held):
                continue
            for key, value in held.items() if not same else ():
                if key in now and now[key] is value:
                    continue
                if key in _STATE or not _shared(value) or _of_the_same_library(name, key, now.get(key)):
                    continue
                changes.append(f"{name}.{key}")
            if isinstance(owner, type):
                changes += [f"{name}.{key}" for key in now.keys() - held.keys() if _shared(now[key])]
        changes += [
            n
            for n, owner in self._before.items()
            if isinstance(owner, ModuleType) and sys.modules.get(n) is not owner
        ]
        return sorted(set(changes))


def _of_the_same_library(owner: str, key: str, value: Any) -> bool:
    """Check whether a library replaced its own function by another of that name, as some do while loading."""
    library = owner.split(".")[0]
    module = getattr(value, "__module__", None)
    return (
        isinstance(module, str)
        and module.split(".")[0] == library
        and getattr(value, "__name__", None) == key
        and sys.modules.get(module) is not None
        and library != _OURS.rstrip(".")
    )


def _shared(value: Any) -> bool:
    """Functions, classes, modules and descriptors; data of a module may change."""
    return callable(value) or isinstance(value, (ModuleType, property, staticmethod, classmethod))


def _owners() -> list[tuple[str, Any]]:
    owners: list[tuple[str, Any]] = []
    for name in (*_MODULES, *(name for name in list(sys.modules) if name.startswith(_OURS))):
        module = sys.modules.get(name)
        if isinstance(module, ModuleType):
            owners.append((name, module))
            if name.startswith(_OURS):
                owners += _classes(module)
    torch = sys.modules.get("torch")
    if torch is not None:
        owners += [("torch.Tensor", torch.Tensor), ("torch._C.TensorBase", torch._C.TensorBase),
                   ("torch.nn.Module", torch.nn.Module)]  # fmt: skip
    jit = sys.modules.get("triton.runtime.jit")
    if jit is not None:
        owners += [(f"triton.{c.__name__}", c) for c in (jit.JITFunction, jit.KernelInterface)]
    return owners


@functools.cache
def _classes(module: ModuleType) -> list[tuple[str, Any]]:
    """Return the classes of a module of ours. One that is replaced later shows as a change of the module."""
    return [
        (f"{module.__name__}.{key}", value)
        for key, value in list(vars(module).items())
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
