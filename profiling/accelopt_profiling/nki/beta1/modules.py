"""The stand-in modules ``neuronxcc.nki`` and below."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.beta1 import compiler as compiler_names
from accelopt_profiling.nki.beta1 import isa, language
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.frontend.handle import KernelTensor, handing_all, mutable_tensor
from accelopt_profiling.nki.frontend.jit import EmulatedKernel, Launcher, decorator
from accelopt_profiling.nki.frontend.language import WITHOUT_TENSORS
from accelopt_profiling.nki.frontend.namespace import Namespace, constants_of


def _prepare(machine: Machine) -> None:
    machine.operators = language._operator


def modules(launch: Launcher) -> dict[str, Any]:
    """Return every stand-in by its import name."""
    jit = decorator(launch, _prepare)
    trace = decorator(launch, _prepare, writes_arguments=True)

    def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a kernel on NumPy arrays, as the SDK's own simulator does."""
        return (kernel if isinstance(kernel, EmulatedKernel) else trace(kernel))(*args, **kwargs)

    nl = Namespace(
        "neuronxcc.nki.language", handing_all(language.names(), (*language.LOOPS, *WITHOUT_TENSORS))
    )
    nisa = Namespace("neuronxcc.nki.isa", handing_all(isa.names()))
    constants = constants_of("neuronxcc.nki.isa", nisa)
    sizes = Namespace(
        "neuronxcc.nki.language.constants", {"sizeinbytes": lambda dtype: as_dtype(dtype).itemsize}
    )
    nl.__dict__["constants"] = sizes
    typing = Namespace(
        "neuronxcc.nki.typing",
        {"tensor": KernelTensor, "mutable_tensor": mutable_tensor, "scalar": np.generic},
    )
    compiler = Namespace("neuronxcc.nki.compiler", compiler_names.names())
    nki = Namespace(
        "neuronxcc.nki",
        {
            "jit": jit, "trace": trace, "baremetal": trace, "benchmark": trace, "profile": trace,
            "simulate_kernel": simulate_kernel, "language": nl, "isa": nisa, "typing": typing,
            "compiler": compiler, "tensor": KernelTensor,
        },
    )  # fmt: skip
    root = Namespace("neuronxcc", {"nki": nki, "_accelopt_emulated": True, "__version__": "0+emulated"})
    return {m.__name__: m for m in (root, nki, nl, nisa, constants, sizes, typing, compiler)}
