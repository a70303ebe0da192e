"""The stand-in modules ``neuronxcc.nki`` and below, ``neuronxcc.nki.compiler`` whole: allocators for tiles that a
kernel places itself, and hints to the compiler.

The emulation places every tile by its lifetime. Addresses and rotating buffers that a kernel chooses are not checked:
a tile that is overwritten too early on the hardware keeps its values here, which is reported once per line.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

from accelopt_profiling.nki.beta1 import language
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.data.memory_space import PSUM, SBUF, Buffer
from accelopt_profiling.nki.emulator.machine import Machine, running_machine
from accelopt_profiling.nki.frontend.binding import bound_functions, choices
from accelopt_profiling.nki.frontend.handle import TYPING, KernelTensor
from accelopt_profiling.nki.frontend.jit import Launcher, decorator
from accelopt_profiling.nki.frontend.namespace import Namespace, constants_of
from accelopt_profiling.nki.replay.range_loops import observe


def _prepare(machine: Machine) -> None:
    machine.operators, machine.create = language.operators, language.create
    machine.trace.dialect = "beta1"


def modules(launch: Launcher) -> dict[str, Any]:
    """Return every stand-in by its import name."""
    read = partial(observe, ranges=False)
    jit = decorator(launch, _prepare, read=read)
    trace = decorator(launch, _prepare, writes_arguments=True, read=read)

    def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a kernel on NumPy arrays, as the SDK's own simulator does."""
        return trace(kernel)(*args, **kwargs)

    nl = Namespace("neuronxcc.nki.language", {**language.constants(), **bound_functions("beta1", "nl")})
    nisa = Namespace("neuronxcc.nki.isa", {**choices("beta1"), **bound_functions("beta1", "nisa")})
    constants = constants_of("neuronxcc.nki.isa", nisa)
    sizes = Namespace(
        "neuronxcc.nki.language.constants", {"sizeinbytes": lambda dtype: as_dtype(dtype).itemsize}
    )
    nl.__dict__["constants"] = sizes
    typing = Namespace("neuronxcc.nki.typing", {"tensor": KernelTensor, **TYPING})
    compiler = Namespace("neuronxcc.nki.compiler", _compiler_names())
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


def _allocator(buffer: Buffer) -> Any:
    def allocate(*placing: Any, **named: Any) -> Buffer:
        """``buffer``, wherever in it the kernel wants the tile to lie."""
        machine = running_machine()
        if machine is not None:
            message = f"The addresses chosen here are not checked: tiles in {buffer!r} are placed by their lifetime."
            machine.diagnostics.report("unsupported", message, "information")
        return buffer

    return allocate


def _as_it_is(function: Any = None, **options: Any) -> Any:
    """Decorate, with or without options, by what changes how the compiler works, not what the kernel computes."""
    return (lambda decorated: decorated) if function is None else function


def _compiler_names() -> dict[str, Any]:
    places = {
        b.name: Namespace(
            f"neuronxcc.nki.compiler.{b.name}", {"alloc": _allocator(b), "mod_alloc": _allocator(b)}
        )
        for b in (SBUF, PSUM)
    }
    hints = ("skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc")
    return {**places, **dict.fromkeys(hints, _as_it_is), "no_reorder": nullcontext, "multi_buffer": _as_it_is}
