"""``neuronxcc.nki.compiler``: allocators for tiles that a kernel places itself, and hints to the compiler.

The emulation places every tile by its lifetime. Addresses and rotating buffers that a kernel chooses are not checked: a
tile that is overwritten too early on the hardware keeps its values here, which is reported once per line.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from accelopt_profiling.nki.data.memory_space import PSUM, SBUF, Buffer
from accelopt_profiling.nki.emulator.machine import running_machine
from accelopt_profiling.nki.frontend.namespace import Namespace


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


def names() -> dict[str, Any]:
    places = {
        b.name: Namespace(
            f"neuronxcc.nki.compiler.{b.name}", {"alloc": _allocator(b), "mod_alloc": _allocator(b)}
        )
        for b in (SBUF, PSUM)
    }
    hints = ("skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc")
    return {**places, **dict.fromkeys(hints, _as_it_is), "no_reorder": nullcontext, "multi_buffer": _as_it_is}
