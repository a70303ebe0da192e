"""The real SDK where it is importable: its own CPU simulator runs the kernels instead of the emulator."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

#: The dialects' packages, and what each calls its simulator.
_SIMULATORS = {"neuronxcc.nki": "simulate_kernel", "nki": "simulate"}
#: The SDK's own variable for the target to simulate, and its values by core generation.
TARGET_VARIABLE = "NEURON_PLATFORM_TARGET_OVERRIDE"
_TARGETS = {2: "trn1", 3: "trn2", 4: "trn3"}


def real_packages() -> dict[str, ModuleType]:
    """Return the packages of the SDK that are importable and have a simulator, by dotted name. Stand-ins do
    not count.

    The placeholders of that name on public package indexes raise when imported, or lack the simulator.
    """
    packages: dict[str, ModuleType] = {}
    for dotted, simulator in _SIMULATORS.items():
        root = dotted.partition(".")[0]
        loaded = sys.modules.get(root)
        if loaded is not None and getattr(loaded, "_accelopt_emulated", False):
            continue
        try:
            if loaded is None and importlib.util.find_spec(root) is None:
                continue
            module = importlib.import_module(dotted)
        except Exception:  # a placeholder of that name, or half an installation
            continue
        if callable(getattr(module, simulator, None)):
            packages[dotted] = module
    return packages


class Simulated:
    """A kernel of the real SDK that its simulator runs when it is called."""

    def __init__(self, kernel: Any, simulate: Callable[..., Any], depth: list[int]) -> None:
        functools.update_wrapper(self, kernel, updated=())
        self.kernel, self._simulate, self._depth = kernel, simulate, depth

    def __getitem__(self, grid: Any) -> Simulated:
        return Simulated(self.kernel[grid], self._simulate, self._depth)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._depth[0]:  # one kernel calls another: the SDK's own business
            return self.kernel(*args, **kwargs)
        self._depth[0] += 1
        try:
            return _arrays(self._simulate(self.kernel, *args, **kwargs))
        finally:
            self._depth[0] -= 1


def _arrays(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_arrays(v) for v in value)
    return np.asarray(value) if hasattr(value, "__array__") else value


@contextmanager
def simulating(packages: dict[str, ModuleType], generation: int) -> Iterator[None]:
    """Have ``jit`` of ``packages``, while the context lasts, make kernels that the simulator runs, for a
    generation."""
    before = {dotted: module.__dict__.get("jit") for dotted, module in packages.items()}
    target = os.environ.get(TARGET_VARIABLE)
    os.environ[TARGET_VARIABLE] = _TARGETS[generation]
    depth = [0]
    try:
        for dotted, module in packages.items():
            module.__dict__["jit"] = _jit(module, dotted, depth)
        yield
    finally:
        for dotted, module in packages.items():
            module.__dict__["jit"] = before[dotted]
        if target is None:
            del os.environ[TARGET_VARIABLE]
        else:
            os.environ[TARGET_VARIABLE] = target


def _jit(module: ModuleType, dotted: str, depth: list[int]) -> Callable[..., Any]:
    real = module.jit

    def simulate(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        if dotted == "nki":
            return module.simulate(kernel)(*args, **kwargs)
        return module.simulate_kernel(kernel, *args, **kwargs)

    def jit(function: Any = None, **options: Any) -> Any:
        if function is None:
            return lambda f: jit(f, **options)
        if isinstance(function, Simulated):
            return function
        return Simulated(real(function, **options) if options else real(function), simulate, depth)

    return jit
