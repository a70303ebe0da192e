"""The memories of a NeuronCore with their sizes, and their names in kernels: ``nl.sbuf``, ``nl.psum``, ``nl.hbm`` and
its kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MemorySpace(str, Enum):
    HBM = "hbm"
    SBUF = "sbuf"
    PSUM = "psum"

    def __str__(self) -> str:
        return self.value


class Buffer(Enum):
    """``nl.MemoryRegion``, the value of ``buffer=`` in a kernel. ``shared`` buffers hold a kernel's outputs."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"
    hbm = private_hbm

    @property
    def memory(self) -> MemorySpace:
        return MemorySpace.HBM if self.value.endswith("hbm") else MemorySpace(self.value)

    @property
    def shared(self) -> bool:
        return self is Buffer.shared_hbm

    def __repr__(self) -> str:
        return f"nl.{self.name}"


SBUF, PSUM, PRIVATE_HBM, SHARED_HBM = Buffer
HBM = PRIVATE_HBM
BUFFERS = dict(Buffer.__members__)


@dataclass(frozen=True)
class CoreLimits:
    """Sizes of one NeuronCore, in bytes per partition or elements; read from ``targets/*.json`` ("limits").

    The defaults are those of NeuronCore-v2 (NKI architecture guide).
    """

    partitions: int = 128
    sbuf_bytes: int = 192 << 10
    psum_bytes: int = 16 << 10
    psum_bank_bytes: int = 2 << 10
    stationary_columns: int = 128
    moving_columns: int = 512

    @property
    def generation(self) -> int:
        """2, 3 or 4, for NeuronCore-v2 (trn1), v3 (trn2), v4 (trn3), by the size of their SBUF."""
        return 2 if self.sbuf_bytes <= 192 << 10 else 3 if self.sbuf_bytes <= 224 << 10 else 4
