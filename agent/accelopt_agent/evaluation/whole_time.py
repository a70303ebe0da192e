"""Adds the measurements of all kernels that a problem launches: the time of a version that changes more than one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import Known, Quantity

#: Quantities of a kernel: its time as part of a larger launch, and that of all its launches together.
AT_SCALE, ALL_LAUNCHES = "time_at_scale", "all_launches_time"
#: Quantities of a version that is compared as a whole: the time of what the original launches besides the kernel.
REST, REST_AT_SCALE = "other_kernels_time", "other_kernels_time_at_scale"

#: Launches that write as much, as far as a sample of their programs tells.
_SAME_AMOUNT = 0.05
_WORST = (Known.MEASURED, Known.EXECUTED, Known.COMPILED, Known.ESTIMATED, Known.NOT_MEASURED)


def total(latencies: Sequence[Latency]) -> Latency:
    """Return the sum.

    Its ends are the sums of the ends, and it is known as badly as the worst. Nothing where one is not known.
    """
    if any(t.us is None for t in latencies):
        return Latency()
    certainty = max((t.known for t in latencies), key=_WORST.index, default=Known.NOT_MEASURED)
    if not latencies:
        return Latency()
    bounded = all(t.low_us is not None and t.high_us is not None for t in latencies)
    return Latency(
        sum(t.us or 0.0 for t in latencies),
        sum(t.low_us or 0.0 for t in latencies) if bounded else None,
        sum(t.high_us or 0.0 for t in latencies) if bounded else None,
        certainty,
    )


def time_of(measurement: KernelMeasurement) -> Latency:
    """Return the time of all launches of a kernel."""
    every = measurement.quantities.get(ALL_LAUNCHES)
    if every is None or every.value is None or measurement.latency.known is not every.known:
        return measurement.latency
    return Latency(every.value, every.low, every.high, every.known)


def at_scale(measurement: KernelMeasurement) -> Latency:
    """Return the time of all launches of a kernel as parts of larger ones; that of the launches where it is not
    known."""
    share = measurement.quantities.get(AT_SCALE)
    if share is None or share.value is None:
        return time_of(measurement)
    each = [launch.at_scale for launch in measurement.launches if launch is not None]
    if launch_count(measurement) > 1 and len(each) == launch_count(measurement):
        return total(each)
    return Latency(share.value, share.low, share.high, share.known)


def launch_count(measurement: KernelMeasurement) -> int:
    """Return how often the problem launches a kernel that is measured by launch; 1 where all are measured as one."""
    count = measurement.quantities.get("launches")
    return 1 if count is None or count.value is None else int(count.value)


def same_amount(before: KernelMeasurement, after: KernelMeasurement) -> bool:
    """Tell whether one launch of a version computes as much as one of another: where a problem launches a kernel as
    often, and where that is several times, the launch that is stated writes as much."""
    if launch_count(before) != launch_count(after):
        return False
    old, new = (m.quantities.get("store_bytes") for m in (before, after))
    if launch_count(before) == 1 or old is None or new is None or not old.value or not new.value:
        return True
    return abs(old.value - new.value) <= _SAME_AMOUNT * old.value


def together_known(measurement: KernelMeasurement) -> bool:
    """Tell whether the time of all launches of a kernel is known, and not that of one alone."""
    if launch_count(measurement) == 1:
        return True
    scaled = AT_SCALE not in measurement.quantities or None not in (measurement.launches or (None,))
    return ALL_LAUNCHES in measurement.quantities and scaled


def whole(
    kernels: Sequence[KernelMeasurement], name: str, rest: Sequence[KernelMeasurement]
) -> KernelMeasurement:
    """Return ``kernels``, all that a version launches, with the sum of their times. It is called after the kernel
    ``name`` or, where that is gone, the costliest. ``rest`` is what the original launches besides the kernel that the
    search is about."""
    ranked = sorted(kernels, key=lambda k: -(time_of(k).us or 0.0))
    main = next((k for k in ranked if k.name == name), ranked[0])
    together, scaled = total([time_of(k) for k in ranked]), total([at_scale(k) for k in ranked])
    quantities = dict(main.quantities)
    for key, latency in (
        (AT_SCALE, scaled if AT_SCALE in main.quantities else Latency()),
        (REST, total([time_of(k) for k in rest]) if rest else Latency(0.0, 0.0, 0.0, together.known)),
        (
            REST_AT_SCALE,
            total([at_scale(k) for k in rest]) if rest else Latency(0.0, 0.0, 0.0, together.known),
        ),
    ):
        if latency.us is not None:
            quantities[key] = Quantity(
                latency.us, latency.known, unit="us", low=latency.low_us, high=latency.high_us
            )
    return replace(
        main,
        latency=together,
        quantities=quantities,
        percent_of_peak=main.percent_of_peak if len(ranked) == 1 else None,
        launches=(),
        lines=[line for k in ranked for line in k.lines],
        findings=[finding for k in ranked for finding in k.findings],
    )
