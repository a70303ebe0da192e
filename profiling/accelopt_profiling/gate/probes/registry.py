"""All probes: of values and of sizes in the order of what they find per second spent, then those of conduct."""

from __future__ import annotations

from pathlib import Path

from accelopt_profiling.gate.case_files import CONFIGURATION, beside
from accelopt_profiling.gate.probes.circumstances import FurtherCalls, Interleaved, Kept, Later, LateWrites
from accelopt_profiling.gate.probes.conduct import (
    CallersState,
    FarSizes,
    Hashes,
    HostComputing,
    Inputs,
    Launches,
    LaunchOnTarget,
    Precision,
    Races,
)
from accelopt_profiling.gate.probes.counts import OneGroup, OtherCounts, OtherIndices, OutOfOrder
from accelopt_profiling.gate.probes.lengths import OneLength
from accelopt_profiling.gate.probes.long_sums import HalfRange, LongColumns, LongRows, NarrowTypes
from accelopt_profiling.gate.probes.lopsided import LateSinks, Skewed, Spikes
from accelopt_profiling.gate.probes.numbers import OtherIntegers, OtherNumbers
from accelopt_profiling.gate.probes.ordinary import Integers, Large, Original, Rows, SameRest, SameSums, Small
from accelopt_profiling.gate.probes.other_ways import (
    Configurations,
    OnDevice,
    OtherDevices,
    Reordered,
    WithoutKernels,
)
from accelopt_profiling.gate.probes.probe import Probe, SizeProbe, ValueProbe
from accelopt_profiling.gate.probes.range_ends import FarElements, IntegerEnds, Masked, Offset
from accelopt_profiling.gate.probes.signs import OtherSigns
from accelopt_profiling.gate.probes.single_elements import Infinities, NamedValues, SingleElements
from accelopt_profiling.gate.probes.sizes import (
    BeyondLimits,
    DerivedShapes,
    LongAxes,
    SmallerSizes,
    UnevenSizes,
    WideLaunches,
)
from accelopt_profiling.gate.probes.strides import ExchangedAxes, MatricesApart, RowsApart, UnequalAxes

#: Cases are planned, further calls made and reasons given in this order.
PROBES: tuple[Probe, ...] = (
    Original(),
    Large(),
    Small(),
    Skewed(),
    Spikes(),
    LateSinks(),
    Rows(),
    LongRows(),
    LongColumns(),
    HalfRange(),
    NarrowTypes(),
    Offset(),
    FarElements(),
    IntegerEnds(),
    OtherNumbers(),
    Masked(),
    RowsApart(),
    MatricesApart(),
    ExchangedAxes(),
    UnequalAxes(),
    OneLength(),
    OtherCounts(),
    OneGroup(),
    OutOfOrder(),
    OtherIntegers(),
    OtherSigns(),
    Infinities(),
    SingleElements(),
    NamedValues(),
    Integers(),
    SameSums(),
    SameRest(),
    OtherIndices(),
    SmallerSizes(),
    DerivedShapes(),
    LongAxes(),
    UnevenSizes(),
    WideLaunches(),
    BeyondLimits(),
    Launches(),
    CallersState(),
    Hashes(),
    Races(),
    FurtherCalls(),
    Later(),
    Interleaved(),
    Inputs(),
    OnDevice(),
    Configurations(),
    LateWrites(),
    Kept(),
    Reordered(),
    WithoutKernels(),
    OtherDevices(),
    HostComputing(),
    Precision(),
    LaunchOnTarget(),
    FarSizes(),
)
VALUES = {probe.name: probe for probe in PROBES if isinstance(probe, ValueProbe)}
SIZES = {probe.name: probe for probe in PROBES if isinstance(probe, SizeProbe)}
#: Folders of outputs, besides those of further configurations.
_FURTHER = [folder for probe in PROBES for folder in probe.folders]
_RAW = ("outputs", *_FURTHER, "original", *map(beside, _FURTHER))


def raw_folders(folder: Path) -> list[str]:
    """Return the names of the folders in a case's ``folder`` that hold outputs as they were returned."""
    further = sorted(p.name for p in folder.glob(f"{CONFIGURATION} *"))
    return [*(name for name in _RAW if (folder / name).is_dir()), *further]
