"""All probes of values and of sizes, in the order of what they find per second spent."""

from __future__ import annotations

from accelopt_profiling.gate.probes.integers import Integers, SameRest, SameSums
from accelopt_profiling.gate.probes.long_sums import HalfRange, LongColumns, LongRows
from accelopt_profiling.gate.probes.lopsided import Skewed, Spikes
from accelopt_profiling.gate.probes.probe import Probe, SizeProbe, ValueProbe
from accelopt_profiling.gate.probes.range_ends import FarElements, IntegerEnds, Offset
from accelopt_profiling.gate.probes.rows import Rows
from accelopt_profiling.gate.probes.scales import Large, Original, Small
from accelopt_profiling.gate.probes.sizes import BeyondLimits, DerivedShapes, SmallerSizes

#: The cases of a check are planned in this order.
PROBES: tuple[Probe, ...] = (
    Original(),
    Large(),
    Small(),
    Skewed(),
    Spikes(),
    Rows(),
    LongRows(),
    LongColumns(),
    HalfRange(),
    Offset(),
    FarElements(),
    IntegerEnds(),
    Integers(),
    SameSums(),
    SameRest(),
    SmallerSizes(),
    DerivedShapes(),
    BeyondLimits(),
)
VALUES = {probe.name: probe for probe in PROBES if isinstance(probe, ValueProbe)}
SIZES = {probe.name: probe for probe in PROBES if isinstance(probe, SizeProbe)}
