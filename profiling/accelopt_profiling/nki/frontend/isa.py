"""The part of ``nki.isa`` that both dialects share."""

from __future__ import annotations

from enum import Enum

from accelopt_profiling.nki.emulator.machine import limits


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
