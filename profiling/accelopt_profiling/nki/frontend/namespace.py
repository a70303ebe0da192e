"""Stand-in modules: a name that is not emulated ends the kernel with its line and the nearest name that is."""

from __future__ import annotations

import difflib
from types import ModuleType
from typing import Any

from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError, user_line


class Namespace(ModuleType):
    """A stand-in module. A missing name raises ``KernelFaultError``; one with two underscores, ``AttributeError``."""

    def __init__(self, name: str, names: dict[str, Any], missing: dict[str, str] | None = None) -> None:
        """``missing`` explains names that other versions have."""
        super().__init__(name, f"Emulated {name}: runs without the Neuron SDK.")
        self.__dict__.update(names)
        self.__dict__["__path__"] = []
        self.__dict__["_missing"] = missing or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._missing:
            raise KernelFaultError("unsupported", f"{self._missing[name]}.", user_line())
        known = [n for n in self.__dict__ if not n.startswith("_")]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"; the nearest there is: {self.__name__}.{near[0]}" if near else ""
        raise KernelFaultError("unsupported", f"{self.__name__}.{name} is not emulated{hint}.", user_line())
