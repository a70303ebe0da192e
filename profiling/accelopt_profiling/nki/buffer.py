"""Where a tensor lies, as kernels write it: ``nl.sbuf``, ``nl.psum``, ``nl.hbm`` and its kinds."""

from __future__ import annotations

from accelopt_profiling.nki.data.instruction import Memory


class Buffer:
    """A place for a tensor: ``nl.sbuf``, ``nl.psum``, ``nl.hbm`` and its kinds."""

    def __init__(self, name: str, memory: Memory, shared: bool = False) -> None:
        self.name, self.memory, self.shared = name, memory, shared

    def __repr__(self) -> str:
        return f"nl.{self.name}"


SBUF, PSUM = Buffer("sbuf", Memory.SBUF), Buffer("psum", Memory.PSUM)
HBM, PRIVATE_HBM, SHARED_HBM = (
    Buffer("hbm", Memory.HBM),
    Buffer("private_hbm", Memory.HBM),
    Buffer("shared_hbm", Memory.HBM, True),
)
BUFFERS = {b.name: b for b in (SBUF, PSUM, HBM, PRIVATE_HBM, SHARED_HBM)}
