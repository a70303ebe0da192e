"""Modules that say what is missing: an unknown name raises a fault with the line and the nearest name there is."""

from __future__ import annotations

import difflib
from types import ModuleType
from typing import Any

from accelopt_profiling.nki.emulator.diagnostics import KernelFault


class Namespace(ModuleType):
    """A stand-in module. Names it lacks raise ``KernelFault`` inside a kernel and ``AttributeError`` for probes."""

    def __init__(self, name: str, names: dict[str, Any], missing: dict[str, str] | None = None) -> None:
        """``missing`` says of names that other versions have what became of them."""
        super().__init__(name, f"Emulated {name}: runs without the Neuron SDK.")
        self.__dict__.update(names)
        self.__dict__["__path__"] = []
        self.__dict__["_missing"] = missing or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._missing:
            raise KernelFault("unsupported", f"{self._missing[name]}.", _user_line())
        known = [n for n in self.__dict__ if not n.startswith("_")]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"; the nearest there is: {self.__name__}.{near[0]}" if near else ""
        raise KernelFault("unsupported", f"{self.__name__}.{name} is not emulated{hint}.", _user_line())


def _user_line() -> int:
    from accelopt_profiling.nki.emulator.machine import Machine

    return Machine().line()
