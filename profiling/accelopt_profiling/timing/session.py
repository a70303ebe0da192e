"""Time one file, or two against each other, in one session on a device: the whole call and each of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from accelopt_profiling.measurement import Latency
from accelopt_profiling.timing.check_step import CheckedRuns
from accelopt_profiling.timing.conditions import Conditions, notes
from accelopt_profiling.timing.device import Device
from accelopt_profiling.timing.launches import DeviceKernel, LaunchTimer, same_set
from accelopt_profiling.timing.measure import After, Runs, TimingPlan, measure
from accelopt_profiling.timing.statistics import TimeComparison, compare, latency

CANDIDATE, BASELINE = "candidate", "baseline"
KERNEL_ROUNDS = 30
TRACED_ROUNDS = 3
MOST_SAMPLES = 500


@dataclass(frozen=True)
class Surroundings:
    """The things that a session needs besides the device: a clock in seconds, the tracer (None where there is none),
    Triton's launch hooks around a block, and a reading of the device's conditions.
    """

    clock: Callable[[], float]
    trace: Callable[[Callable[[], Any]], list[DeviceKernel] | None]
    hooked: Callable[[LaunchTimer], AbstractContextManager[None]]
    conditions: Callable[[], Conditions | None]


@dataclass(frozen=True)
class TimingSession:
    """The results of a session.

    ``timings`` are latencies per Triton kernel (the launches of one run summed), ``call`` is that of the whole call.
    ``names`` are the kernels that the tracer saw in one run, None where there is no tracer. ``samples_us`` are the
    times of single runs in their order, every second or third when they are many. ``checked`` is what another process
    found when it compared some runs' outputs with the reference.
    """

    device: str
    timings: dict[str, Latency]
    call: Latency
    wall: Latency
    runs: int
    warm_runs: int
    names: list[str] | None = None
    before: Conditions | None = None
    after: Conditions | None = None
    comparison: TimeComparison | None = None
    notes: list[str] = field(default_factory=list)
    samples_us: list[float] = field(default_factory=list)
    checked: CheckedRuns | None = None


def time_calls(
    device: Device,
    variants: Mapping[str, Callable[[Any], Any]],
    inputs: Callable[[], Any],
    plan: TimingPlan,
    around: Surroundings,
    after: After = lambda name, run, arguments, returned: None,
) -> TimingSession:
    """Time the variant ``CANDIDATE``, and compare it with ``BASELINE`` if that is given too. ``inputs`` and ``after``
    are those of ``measure.measure``.
    """
    before = around.conditions()
    runs = measure(device, variants, inputs=inputs, plan=plan, clock=around.clock, after=after)
    own = runs[CANDIDATE]
    candidate = variants[CANDIDATE]
    timings = _by_kernel(device, candidate, inputs, around)
    traces = _traces(device, candidate, inputs, around)
    remarks = _run_notes(own)
    if traces:
        timings = {**_only_traced(traces, timings), **timings}
        if not same_set(traces):
            remarks.append("Not every run executed the same kernels.")
    then = around.conditions()
    comparison = None
    if BASELINE in runs:
        comparison = compare(own.times_us, runs[BASELINE].times_us)
        remarks += [f"The baseline: {note}" for note in _run_notes(runs[BASELINE])]
    names = sorted({kernel.name for trace in traces for kernel in trace}) if traces else None
    return TimingSession(
        device.name,
        timings,
        call=latency(own.times_us),
        wall=latency(own.wall_us),
        runs=len(own.device_us),
        warm_runs=own.warm,
        names=names,
        before=before,
        after=then,
        comparison=comparison,
        notes=[*remarks, *notes(before, then)],
        samples_us=_thinned(own.times_us),
    )


def _run_notes(runs: Runs) -> list[str]:
    remarks = []
    if not runs.stable:
        remarks.append(f"The time had not settled after {runs.warm} runs.")
    if runs.escapes:
        remarks.append(
            "Work goes on after the call's stream is done; the time is that until the device is idle."
        )
    if len(set(runs.device_us)) == 1 and len(runs.device_us) > 10:
        remarks.append("Every run took the very same time, which no device does.")
    return remarks


def _thinned(samples: Sequence[float]) -> list[float]:
    return [round(us, 3) for us in samples[:: 1 + len(samples) // MOST_SAMPLES]]


def _by_kernel(
    device: Device, call: Callable[[Any], Any], inputs: Callable[[], Any], around: Surroundings
) -> dict[str, Latency]:
    """Latencies per kernel by events around each launch, in runs of their own: the events cost a little themselves."""
    timer = LaunchTimer(device.event, device.synchronize, device.capturing)
    samples: dict[str, list[float]] = {}
    with around.hooked(timer):
        for _ in range(KERNEL_ROUNDS):
            arguments = inputs()
            device.empty_caches()
            call(arguments)
            for name, total in timer.finish().items():
                samples.setdefault(name, []).append(total)
    return {name: latency(totals) for name, totals in samples.items()}


def _traces(
    device: Device, call: Callable[[Any], Any], inputs: Callable[[], Any], around: Surroundings
) -> list[list[DeviceKernel]]:
    """Return what the tracer saw of some runs, each from cold caches. Empty where there is no tracer."""
    traces = []
    for _ in range(TRACED_ROUNDS):
        arguments = inputs()
        device.empty_caches()
        traces.append(around.trace(partial(call, arguments)))
    return [trace for trace in traces if trace is not None]


def _only_traced(traces: list[list[DeviceKernel]], hooked: Mapping[str, Any]) -> dict[str, Latency]:
    """Kernels that Triton's hooks did not see, because a graph launched them: their times by the tracer."""
    totals: dict[str, list[float]] = {}
    for trace in traces:
        of_run: dict[str, float] = {}
        for kernel in trace:
            if kernel.name not in hooked:
                of_run[kernel.name] = of_run.get(kernel.name, 0.0) + kernel.us
        for name, total in of_run.items():
            totals.setdefault(name, []).append(total)
    return {name: latency(times) for name, times in totals.items()}
