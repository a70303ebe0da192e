"""Compiles a version of a Triton kernel for sizes that a block size divides, chosen at each launch."""

from __future__ import annotations

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel

#: A size argument and the constexpr block size that may divide it.
Division = tuple[str, str]


def divisions_as_flags(
    kernel: TritonKernel, divisions: list[Division]
) -> tuple[dict[Division, str], list[ByteEdit]] | None:
    """Return a constexpr flag for each division, true where it leaves no rest, and the edits that declare
    them.

    The flags are computed by ``triton.heuristics`` from the launch's own arguments. None when the kernel has
    heuristics already, or its file no name for them.
    """
    source, names = kernel.source, kernel.names
    heuristics = names.spelled("triton.heuristics")
    jit = kernel.function.decorators[-1]
    called = jit.decorator.func if isinstance(jit.decorator, cst.Call) else jit.decorator
    if (
        heuristics is None
        or kernel.spell("constexpr") is None
        or names.path(called) not in ("triton.jit", "triton.runtime.jit")
    ):
        return None
    if kernel.decorator("triton.heuristics") is not None or kernel.function.params.star_kwarg is not None:
        return None
    flags: dict[Division, str] = {}
    for size, block in divisions:
        twice = any(s == size and b != block for s, b in divisions)
        flags[size, block] = f"EVEN_{size.upper()}_{block.upper()}" if twice else f"EVEN_{size.upper()}"
    if set(flags.values()) & set(kernel.parameters):
        return None
    declared = kernel.declared(list(flags.values()), "False")
    entries = [
        f'"{flag}": lambda args: args["{size}"] > 0 and args["{size}"] % args["{block}"] == 0'
        for (size, block), flag in flags.items()
    ]
    lines = [f"@{heuristics}({{{entries[0]}}})"]
    if len(entries) > 1:
        lines = [f"@{heuristics}(", "    {", *(f"        {entry}," for entry in entries), "    }", ")"]
    return flags, [*declared, source.before(jit, "\n".join(lines))]
