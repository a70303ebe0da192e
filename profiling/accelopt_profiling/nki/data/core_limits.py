"""The sizes of one NeuronCore."""

from __future__ import annotations

from dataclasses import dataclass


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
