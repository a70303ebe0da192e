"""The choices that instructions take by name: engines, modes of DMA and reductions, core generations."""

from __future__ import annotations

from enum import Enum

from accelopt_profiling.nki.data.instruction import DMA, GPSIMD, SCALAR, TENSOR, VECTOR


class NkiEngine(Enum):
    """``nisa.engine``."""

    tensor = TENSOR
    vector = VECTOR
    scalar = SCALAR
    gpsimd = GPSIMD
    dma = DMA
    sync = "SyncE"
    unknown = ""


class DgeMode(Enum):
    """``nisa.dge_mode``: who makes the descriptors of a transfer."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class OobMode(Enum):
    """``nisa.oob_mode``: what an index out of range does in an indirect transfer."""

    error = 0
    skip = 1


class MatmulPerfMode(Enum):
    """``nisa.matmul_perf_mode``."""

    none = "none"
    double_row = "double_row"
    double_column = "double_column"
    double_pixel = "double_pixel"


class DmaEngine(Enum):
    """``nisa.dma_engine``."""

    dma = 1
    gpsimd_dma = 2
