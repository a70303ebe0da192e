"""Stand-in modules: a name that is not emulated ends the kernel with its line and the nearest name that is. They also
stand for what kernel files import beside NKI: modules of the SDK that are not emulated, and AWS's packages that
bring kernels to a Neuron device.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any, NoReturn

from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError, user_line


def constants_of(name: str, isa: Namespace) -> Namespace:
    """Return ``constants`` below ``isa``: the choices that instructions take by name."""
    choices = {n: v for n, v in vars(isa).items() if isinstance(v, type) and issubclass(v, Enum)}
    isa.__dict__["constants"] = constants = Namespace(f"{name}.constants", choices)
    return constants


class MissingName:
    """A name of the SDK that is not emulated: it can be imported, compared and passed on, and faults where it is used.

    Libraries import more than one kernel needs, so that an import alone says nothing.
    """

    def __init__(self, dotted: str, reason: str) -> None:
        self.__name__, self._reason = dotted, reason

    def __repr__(self) -> str:
        return self.__name__

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


#: AWS's packages, and those below them, that bring tensors and kernels to a Neuron device.
_FRAMEWORKS = frozenset(
    {"torch_xla", "torch_neuronx", "jax_neuronx", "libneuronxla", "neuronx_distributed",
     "neuronx_distributed_inference", "nkipy"}
)  # fmt: skip


class StandInFinder(MetaPathFinder, Loader):
    """The last finder: makes modules below ``roots`` that nothing else finds. Their names fault where they are used."""

    def __init__(self, roots: set[str], frameworks: bool) -> None:
        """``frameworks``: also what brings kernels to a Neuron device, where it is not installed."""
        self._roots = roots | _FRAMEWORKS if frameworks else roots
        self.made: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root = fullname.partition(".")[0]
        return spec_from_loader(fullname, self, is_package=True) if root in self._roots else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.made.append(spec.name)
        make = _NAMES.get(spec.name)
        return Namespace(spec.name, {} if make is None else make())

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stand-in is complete."""


def _cpu(*unused: Any, **named_unused: Any) -> Any:
    """Return the only device there is."""
    import torch

    return torch.device("cpu")


def _nothing(*unused: Any, **named_unused: Any) -> None:
    """Do nothing: operations on the CPU are done when they return."""


def _xla_model() -> dict[str, Callable[..., Any]]:
    return {
        "xla_device": _cpu, "mark_step": _nothing, "wait_device_ops": _nothing, "master_print": print,
        "get_ordinal": lambda *_: 0, "xrt_world_size": lambda *_: 1, "is_master_ordinal": lambda *_: True,
    }  # fmt: skip


def _torch_xla() -> dict[str, Callable[..., Any]]:
    return {"device": _cpu, "sync": _nothing}


def _torch_neuronx() -> dict[str, Callable[..., Any]]:
    return {"nki_jit": sys.modules["neuronxcc.nki"].trace}


_NAMES: dict[str, Callable[[], dict[str, Callable[..., Any]]]] = {
    "torch_xla": _torch_xla, "torch_xla.core.xla_model": _xla_model, "torch_neuronx": _torch_neuronx,
}  # fmt: skip
