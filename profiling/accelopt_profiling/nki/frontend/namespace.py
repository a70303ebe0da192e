"""Stand-in modules: a name that is not emulated ends the kernel with its line and the nearest name that is."""

from __future__ import annotations

import difflib
from enum import Enum
from types import ModuleType
from typing import Any, NoReturn

from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError, user_line


def constants_of(name: str, isa: Namespace) -> Namespace:
    """Return ``constants`` below ``isa``: the choices that instructions take by name."""
    choices = {n: v for n, v in vars(isa).items() if isinstance(v, type) and issubclass(v, Enum)}
    isa.__dict__["constants"] = constants = Namespace(f"{name}.constants", choices)
    return constants


class MissingName:
    """A name of the SDK that is not emulated: it can be imported, compared, passed on and inherited
    from, and faults where it is used.

    Libraries import more than one kernel needs, so that an import alone says nothing.
    """

    def __init__(self, dotted: str, reason: str) -> None:
        self.__name__, self._reason = dotted, reason

    def __repr__(self) -> str:
        return self.__name__

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        """Leave it out where a class is defined as one of its kind: host code that no kernel needs."""
        return ()

    def __call__(self, *unused: Any, **named_unused: Any) -> NoReturn:
        raise KernelFaultError("unsupported", self._reason, user_line())

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise KernelFaultError("unsupported", self._reason, user_line())


class Namespace(ModuleType):
    """A stand-in module. A missing name is a ``MissingName``; one with two underscores raises ``AttributeError``."""

    def __init__(self, name: str, names: dict[str, Any], missing: dict[str, str] | None = None) -> None:
        """``missing`` explains names that other versions have: asking for one raises ``KernelFaultError``."""
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
        return MissingName(f"{self.__name__}.{name}", f"{self.__name__}.{name} is not emulated{hint}.")
