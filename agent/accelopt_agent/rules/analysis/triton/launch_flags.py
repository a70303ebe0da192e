"""Adds constexpr arguments to a Triton kernel that ``triton.heuristics`` computes from a launch's other arguments,
such as whether a block size divides a size.
"""

from __future__ import annotations

from collections.abc import Mapping

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

    The flags are computed at each launch from its own arguments. None where they cannot be (``with_flags``).
    """
    flags: dict[Division, str] = {}
    for size, block in divisions:
        twice = any(s == size and b != block for s, b in divisions)
        flags[size, block] = f"EVEN_{size.upper()}_{block.upper()}" if twice else f"EVEN_{size.upper()}"
    conditions = {
        flag: f'args["{size}"] > 0 and args["{size}"] % args["{block}"] == 0'
        for (size, block), flag in flags.items()
    }
    edits = with_flags(kernel, conditions)
    return (flags, edits) if edits is not None else None


def with_flags(kernel: TritonKernel, flags: Mapping[str, str]) -> list[ByteEdit] | None:
    """Return the edits that declare ``flags`` and compute each by its expression of ``args``, beside what the kernel
    has computed already.

    None where a flag's name is taken, the kernel's heuristics are not written out, or its file has no name for them.
    """
    names, jit = kernel.names, kernel.function.decorators[-1]
    called = jit.decorator.func if isinstance(jit.decorator, cst.Call) else jit.decorator
    word, present = names.spelled("triton.heuristics"), kernel.decorator("triton.heuristics")
    if word is None or kernel.spell("constexpr") is None or kernel.heuristics is None:
        return None
    if names.path(called) not in ("triton.jit", "triton.runtime.jit"):
        return None
    if kernel.function.params.star_kwarg is not None or set(flags) & set(kernel.parameters):
        return None
    entries = [f'"{name}": lambda args: {expression}' for name, expression in flags.items()]
    declared = kernel.declared(list(flags), "False")
    table = present.args[0].value if present is not None else None
    if isinstance(table, cst.Dict) and table.elements:
        last = table.elements[-1]
        assert isinstance(last, cst.DictElement)  # heuristics are written out
        first, end = kernel.source.start(last.key), kernel.source.end(last.value)
        return [*declared, *kernel.source.added(first, end, entries)]
    lines = [f"@{word}({{{entries[0]}}})"]
    if len(entries) > 1:
        lines = [f"@{word}(", "    {", *(f"        {entry}," for entry in entries), "    }", ")"]
    return [*declared, kernel.source.before(jit, "\n".join(lines))]
