"""Measures part ``estimates``: profiles the Triton corpus and examples, and compares estimated with measured times."""

from __future__ import annotations

import contextlib
import math

from accelopt_benchmarks.device.corpus import CorpusKernel, kernels
from accelopt_benchmarks.device.part_result import PartResult, Table, attempt, microseconds
from accelopt_benchmarks.device.session import DeviceSession
from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.measurement import FileMeasurement, KernelMeasurement
from accelopt_profiling.profiler import profile
from accelopt_profiling.quantity import Known, Quantity

_HEADER = ["kernel", "correct", "measured (us)", "estimated (us)", "estimated / measured", "in the interval", "of peak",
           "bound", "findings"]  # fmt: skip


async def estimates(place: DeviceSession) -> PartResult:
    """Profile every kernel of the corpus and the examples.

    Where the device timed one, compare (microseconds).
    """
    table = Table(f"Estimate against measurement (target {place.target})", list(_HEADER))
    lacks = list(place.trouble)
    if place.device and not place.target_known:
        lacks.append(f"No target describes {place.device}: estimates are for {place.target}.")
    ratios: list[float] = []
    inside = right = total = 0
    for subject in kernels():
        measured = await attempt(_profiled(place, subject), place.left(150))
        if isinstance(measured, str):
            lacks.append(f"{subject.name}: {measured}")
            continue
        for kernel in measured.kernels:
            total += 1
            right += kernel.correctness.status == "passed"
            model = kernel.quantities.get("estimated_time")
            table.rows.append(_row(subject.name, kernel, model))
            if kernel.latency.known is Known.MEASURED and kernel.latency.us and model and model.value:
                ratios.append(model.value / kernel.latency.us)
                inside += within(model, kernel.latency.us)
        lacks += [f"{subject.name}: {finding.message}" for finding in measured.findings]
    what = "Triton kernels right, emulated and on the device"
    rows = [GoalResult(what, "all", right, "", right == total > 0, f"of {total}")]
    if not ratios:
        why = "no device" if not place.usable else "nothing was timed"
        rows.append(not_measured("estimate off by, geometric mean", "<= 1.5x", why))
        return PartResult("estimates", rows, [table], lacks)
    middle = math.exp(sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios))
    rows += [
        GoalResult("estimate off by, geometric mean", "<= 1.5x", middle, "x", middle <= 1.5,
            f"over {len(ratios)} kernels"),
        GoalResult("measurement within the estimate's interval", "80 %", 100 * inside / len(ratios), "%",
            inside >= 0.8 * len(ratios)),
    ]  # fmt: skip
    return PartResult("estimates", rows, [table], lacks)


async def _profiled(place: DeviceSession, subject: CorpusKernel) -> FileMeasurement:
    latest: list[FileMeasurement] = []
    async with contextlib.aclosing(profile(place.host, subject.request(place.target))) as measurements:
        async for measurement in measurements:
            latest = [measurement]
    return latest[0]


def within(model: Quantity, us: float) -> bool:
    """Return whether a measured time lies in the interval of an estimate, both in microseconds."""
    return model.low is not None and model.high is not None and model.low <= us <= model.high


def _row(name: str, kernel: KernelMeasurement, model: Quantity | None) -> list[str]:
    timed = kernel.latency.known is Known.MEASURED and bool(kernel.latency.us)
    estimate = model.value if model else None if timed else kernel.latency.us
    ratio = f"{estimate / kernel.latency.us:.2f}" if timed and estimate and kernel.latency.us else "-"
    interval = "-"
    if timed and model and kernel.latency.us:
        interval = "yes" if within(model, kernel.latency.us) else "no"
    share = f"{kernel.percent_of_peak:.0f} %" if kernel.percent_of_peak is not None else "-"
    return [
        name, kernel.correctness.status, microseconds(kernel.latency.us) if timed else "-", microseconds(estimate),
        ratio, interval, share, kernel.bound or "-", ", ".join(sorted({f.code for f in kernel.findings})) or "-",
    ]  # fmt: skip
