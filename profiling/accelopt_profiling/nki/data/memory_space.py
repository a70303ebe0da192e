"""The memories of a NeuronCore, and their names in kernels: ``nl.sbuf``, ``nl.psum``, ``nl.hbm`` and its kinds."""

from __future__ import annotations

from enum import Enum


class MemorySpace(str, Enum):
    HBM = "hbm"
    SBUF = "sbuf"
    PSUM = "psum"


class Buffer:
    """The value of ``buffer=`` in a kernel. ``shared`` buffers hold a kernel's outputs."""

    def __init__(self, name: str, memory: MemorySpace, shared: bool = False) -> None:
        self.name, self.memory, self.shared = name, memory, shared

    def __repr__(self) -> str:
        return f"nl.{self.name}"


SBUF, PSUM = Buffer("sbuf", MemorySpace.SBUF), Buffer("psum", MemorySpace.PSUM)
HBM, PRIVATE_HBM, SHARED_HBM = (
    Buffer("hbm", MemorySpace.HBM),
    Buffer("private_hbm", MemorySpace.HBM),
    Buffer("shared_hbm", MemorySpace.HBM, True),
)
BUFFERS = {b.name: b for b in (SBUF, PSUM, HBM, PRIVATE_HBM, SHARED_HBM)}
