"""The stand-in modules ``neuronxcc.nki`` and below."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.beta1 import compiler as compiler_names
from accelopt_profiling.nki.beta1 import isa, language
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.frontend.handle import KernelTensor, handing_all
from accelopt_profiling.nki.frontend.jit import EmulatedKernel, Launcher, decorator
from accelopt_profiling.nki.frontend.language import WITHOUT_TENSORS
from accelopt_profiling.nki.frontend.namespace import Namespace


def _prepare(machine: Machine) -> None:
    machine.operators = language._operator


def modules(launch: Launcher) -> dict[str, Any]:
    """Return every stand-in by its import name."""
    jit = decorator(launch, _prepare)

    def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a kernel on NumPy arrays, as the SDK's own simulator does."""
        return (kernel if isinstance(kernel, EmulatedKernel) else jit(kernel))(*args, **kwargs)

    nl = Namespace(
        "neuronxcc.nki.language", handing_all(language.names(), (*language.LOOPS, *WITHOUT_TENSORS))
    )
    nisa = Namespace("neuronxcc.nki.isa", handing_all(isa.names()))
    typing = Namespace(
        "neuronxcc.nki.typing", {"tensor": KernelTensor, "mutable_tensor": KernelTensor, "scalar": np.generic}
    )
    compiler = Namespace("neuronxcc.nki.compiler", compiler_names.names())
    nki = Namespace(
        "neuronxcc.nki",
        {
            "jit": jit, "trace": jit, "baremetal": jit, "benchmark": jit, "profile": jit,
            "simulate_kernel": simulate_kernel, "language": nl, "isa": nisa, "typing": typing,
            "compiler": compiler, "tensor": KernelTensor,
        },
    )  # fmt: skip
    root = Namespace("neuronxcc", {"nki": nki, "_accelopt_emulated": True, "__version__": "0+emulated"})
    return {m.__name__: m for m in (root, nki, nl, nisa, typing, compiler)}
