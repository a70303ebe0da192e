"""Measure calls on a device: warm-up until the time is stable, then rounds of every variant in random order.

Each run is timed twice and starts from cold caches, on inputs of its own at an address of its own, with the device
idle. Device events bracket the call on its stream; the wall clock runs until the whole device is idle again, so that
work on other streams or in graphs cannot hide: what goes on after the last event is reported as ``escaped_us``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from accelopt_profiling.timing.device import Device
from accelopt_profiling.timing.statistics import interleaved

#: Work that goes on after the last event counts as escaped beyond this share of the run and this many microseconds:
#: a full synchronisation costs some microseconds by itself.
ESCAPE_SHARE, ESCAPE_US = 0.2, 20.0

#: Told behind each counted run: the variant, the round, what it was given, what it returned.
After = Callable[[str, int, Any, Any], None]


@dataclass(frozen=True)
class TimingPlan:
    """At least ``least_warm`` runs and ``warm_seconds`` seconds, in which clocks rise, are not counted, nor any until
    the time has settled or ``most_warm`` were made; then come at least ``least_rounds`` rounds and for about
    ``seconds`` seconds, but no more than ``most_rounds``.
    """

    least_warm: int = 16
    warm_seconds: float = 0.25
    most_warm: int = 4000
    least_rounds: int = 20
    most_rounds: int = 2000
    seconds: float = 2.0
    seed: int = 0


@dataclass
class Runs:
    """The runs of one variant, in the order of the rounds, in microseconds. ``warm`` tells how many came before them,
    ``stable`` whether the time had settled by then.
    """

    device_us: list[float] = field(default_factory=list)
    wall_us: list[float] = field(default_factory=list)
    escaped_us: list[float] = field(default_factory=list)
    warm: int = 0
    stable: bool = False

    @property
    def escapes(self) -> bool:
        """Check whether work goes on after the call's own stream is done."""
        beyond = median(self.escaped_us) if self.escaped_us else 0.0
        return beyond > max(ESCAPE_US, ESCAPE_SHARE * median(self.device_us))

    @property
    def times_us(self) -> list[float]:
        """The time of each run: by device events, or until the device was idle where work escapes them."""
        if not self.escapes:
            return list(self.device_us)
        return [run + beyond for run, beyond in zip(self.device_us, self.escaped_us, strict=True)]


def measure(
    device: Device,
    variants: Mapping[str, Callable[[Any], Any]],
    inputs: Callable[[], Any],
    plan: TimingPlan,
    clock: Callable[[], float],
    after: After = lambda name, run, arguments, returned: None,
) -> dict[str, Runs]:
    """Time every variant; each call gets what ``inputs`` lays out for it.

    ``clock`` tells seconds. ``after`` is called behind each counted run, outside its time, with the variant, the round,
    what it was given and what it returned.

    What the variants raise goes through.
    """
    runs = {name: Runs() for name in variants}
    for name, own in runs.items():
        warm: list[float] = []
        hot = clock() + plan.warm_seconds
        while len(warm) < plan.least_warm or (
            len(warm) < plan.most_warm and (clock() < hot or not settled(warm))
        ):
            warm.append(_timed(device, variants[name], inputs(), clock)[0])
        own.warm, own.stable = len(warm), settled(warm)
    generator = random.Random(plan.seed)
    end = clock() + plan.seconds
    rounds = 0
    while rounds < plan.least_rounds or (rounds < plan.most_rounds and clock() < end):
        for name in interleaved(list(variants), 1, generator):
            arguments = inputs()
            device_us, wall_us, escaped_us, returned = _timed(device, variants[name], arguments, clock)
            runs[name].device_us.append(device_us)
            runs[name].wall_us.append(wall_us)
            runs[name].escaped_us.append(escaped_us)
            after(name, rounds, arguments, returned)
            del returned  # its memory is the next run's
        rounds += 1
    return runs


def _timed(
    device: Device, call: Callable[[Any], Any], arguments: Any, clock: Callable[[], float]
) -> tuple[float, float, float, Any]:
    """Return one run from cold caches and an idle device: by events, until all is idle, what came after the
    last event, and what the call returned."""
    device.empty_caches()
    start, end = device.event(), device.event()
    began = clock()
    start.record()
    returned = call(arguments)
    end.record()
    end.synchronize()
    own = clock()
    device.synchronize()
    idle = clock()
    return 1000.0 * start.elapsed_time(end), 1e6 * (idle - began), 1e6 * (idle - own), returned


WINDOW = 8


DRIFT = 0.02


LEAST_DRIFT_US = 0.2  # the resolution of device events is about half a microsecond


def settled(samples_us: Sequence[float], window: int = WINDOW, drift: float = DRIFT) -> bool:
    """Check whether the medians of the last two windows of runs agree within ``drift`` (a share), so that warm-up may
    end.

    Compilation, autotuning, clocks that rise and caches that fill all show as a fall of the time; one slow run between
    is noise, which medians pass over.
    """
    if len(samples_us) < 2 * window:
        return False
    before, after = median(samples_us[-2 * window : -window]), median(samples_us[-window:])
    return abs(after - before) <= max(drift * before, LEAST_DRIFT_US)
