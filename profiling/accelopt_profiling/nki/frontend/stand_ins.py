"""Finds modules that kernel files import beside NKI: those of the SDK that are not emulated, and torch_xla's device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from accelopt_profiling.nki.frontend.namespace import Namespace

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


def _parallel_layers() -> dict[str, Any]:
    """One process, as large as its world."""
    one = {f"get_{of}_{what}": (lambda *_, n=n: n) for of in ("tensor_model_parallel", "data_parallel", "world")
           for what, n in (("size", 1), ("rank", 0), ("replica_groups", [[0]]))}  # fmt: skip
    return {"parallel_state": Namespace("neuronx_distributed.parallel_layers.parallel_state", one)}


_NAMES: dict[str, Callable[[], dict[str, Any]]] = {
    "torch_xla": _torch_xla, "torch_xla.core.xla_model": _xla_model, "torch_neuronx": _torch_neuronx,
    "torch_neuronx.xla_impl.ops": _torch_neuronx,
    "neuronx_distributed.parallel_layers": _parallel_layers,
}  # fmt: skip
