"""Compiles a version of a Triton kernel for sizes that a block size divides, chosen at each launch."""

from __future__ import annotations

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.launch_flags import with_flags

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
