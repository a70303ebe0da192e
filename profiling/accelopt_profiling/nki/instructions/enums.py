"""The choices that instructions take by name in both dialects: engines, modes, commands, core generations."""

from __future__ import annotations

from enum import Enum

from accelopt_profiling.nki.data.instruction import DMA, GPSIMD, SCALAR, TENSOR, VECTOR
from accelopt_profiling.nki.emulator.machine import limits


class NkiEngine(Enum):
    """``nisa.engine``."""

    tensor = 1
    vector = 5
    scalar = 2
    gpsimd = 3
    dma = 4
    sync = 6
    unknown = 0

    @property
    def unit(self) -> str:
        """The engine as traces call it."""
        return _UNITS[self.name]


_UNITS = {
    "tensor": TENSOR, "vector": VECTOR, "scalar": SCALAR, "gpsimd": GPSIMD, "dma": DMA, "sync": "SyncE", "unknown": "",
}  # fmt: skip


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


class ReduceCmd(Enum):
    """``nisa.reduce_cmd``: the use of an engine's accumulator registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class NcVersion(Enum):
    """``nisa.nc_version``; members compare by generation."""

    gen2 = 2
    gen3 = 3
    gen4 = 4

    def __lt__(self, other: NcVersion) -> bool:
        return self.value < other.value

    def __le__(self, other: NcVersion) -> bool:
        return self.value <= other.value

    def __gt__(self, other: NcVersion) -> bool:
        return self.value > other.value

    def __ge__(self, other: NcVersion) -> bool:
        return self.value >= other.value


def get_nc_version() -> NcVersion:
    """Return the generation of the core that is emulated."""
    return NcVersion(limits().generation)


def get_nc_sub_version() -> int:
    """Return the revision of the core within its generation: the first one is emulated."""
    return 0


#: The enumerations of ``nisa``, by the name that kernels use.
CHOICES: dict[str, type[Enum]] = {
    "engine": NkiEngine, "dge_mode": DgeMode, "oob_mode": OobMode, "reduce_cmd": ReduceCmd, "nc_version": NcVersion,
    "matmul_perf_mode": MatmulPerfMode, "dma_engine": DmaEngine,
}  # fmt: skip
