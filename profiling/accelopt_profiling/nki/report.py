"""Turns an estimate into a measurement: quantities, line costs, findings."""

from __future__ import annotations

from accelopt_profiling.duration import duration_text
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import (
    Correctness,
    Finding,
    KernelMeasurement,
    Latency,
    Launchability,
    LineCost,
    Severity,
)
from accelopt_profiling.nki.data.instruction import DMA
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.estimate import TimeEstimate, Wait
from accelopt_profiling.nki.time_model.placement import Residency
from accelopt_profiling.quantity import Known, Quantity, estimated, executed

#: DMA guide: contiguous pieces of 2 KiB or more are recommended, below 256 B the overhead rules.
_GOOD_PIECE = 2048
#: Lines below this share of the time are not mentioned.
_WORTH = 0.02
#: From this share of the time on a transfer in small pieces is a warning.
_WORTH_A_WARNING = 0.1


def measurement(
    kernel: Kernel, target: str, host: str, answer: TimeEstimate, findings: list[Finding], correctness: Correctness,
    stage: str, toolchain: dict[str, str],
) -> KernelMeasurement:  # fmt: skip
    """Return the measurement of one kernel that ran in emulation to its end, within the limits of the target or not."""
    findings = [*findings, *cost_findings(answer)]
    fits = not any(f.code == "capacity" and f.severity == "error" for f in findings)
    latency = Latency(answer.us, answer.low_us, answer.high_us, Known.ESTIMATED)
    return KernelMeasurement(
        name=kernel.name, line=kernel.line, dialect="nki", target=target, host=host, correctness=correctness,
        latency=latency, percent_of_peak=answer.percent_of_peak, bound=answer.bound, quantities=quantities(answer),
        lines=lines(answer), findings=findings, content_hash=kernel.content_hash,
        stage=stage, toolchain=toolchain, waiting=latency_cause(answer),
        launchable=Launchability("yes" if fits else "no", Known.EXECUTED),
    )  # fmt: skip


def quantities(answer: TimeEstimate) -> dict[str, Quantity]:
    """Return bytes and instructions as executed; engine times as estimated."""
    plan = answer.schedule
    table = {
        "dma_read_bytes": executed(plan.read_bytes, "B"),
        "dma_write_bytes": executed(plan.write_bytes, "B"),
        "dma_descriptors": executed(sum(plan.line_descriptors.values()), ""),
        "instructions": executed(sum(plan.instructions.values()), ""),
        "sbuf_peak": executed(plan.residency.peak[MemorySpace.SBUF], "B per partition"),
        "psum_peak": executed(plan.residency.peak[MemorySpace.PSUM], "B per partition"),
        "roofline": _interval(answer, answer.roofline_us, exact=True),
    }
    if answer.product_passes:
        table["product_passes"] = executed(answer.product_passes, "passes")
    if plan.cores > 1:
        table["cores"] = executed(plan.cores, "")
    for name, size in (("spill", plan.residency.saved_bytes), ("reload", plan.residency.reloaded_bytes)):
        if size:
            table[f"{name}_bytes"] = estimated(size, 0, 2 * size, "B")
    for engine, ns in plan.busy.items():
        if ns:
            table[f"{engine} busy"] = _interval(answer, ns / 1000)
    if waited := sum(wait.ns for wait in answer.waits):
        table[f"{answer.critical} waits"] = _interval(answer, waited / 1000)
    return table


def _interval(answer: TimeEstimate, us: float, exact: bool = False) -> Quantity:
    if exact or not answer.us:
        return estimated(us, us, us, "us")
    return estimated(us, us * answer.low_us / answer.us, us * answer.high_us / answer.us, "us")


def lines(answer: TimeEstimate) -> list[LineCost]:
    """Return a short text per line that costs something: the engine it keeps busy, or the bytes it moves."""
    plan = answer.schedule
    scale = answer.us / plan.total if plan.total else 0.0
    waiting = {w.line: w for w in reversed(answer.waits) if w.ns >= _WORTH * plan.total}
    costs = []
    for line, engines in sorted(plan.lines.items()):
        engine = max(engines, key=lambda e: engines[e])
        share = engines[engine] / plan.total if plan.total else 0.0
        ns = engines[engine] * scale * 1000
        if engine == DMA:
            size, pieces = plan.line_bytes.get(line, 0), max(1, plan.line_descriptors.get(line, 1))
            moved = f"{_bytes(size)}, {_bytes(size / pieces)} pieces"
            text = f"DMA est. {_time(ns)}, {100 * share:.0f} %: {moved}"
            cause = f"{_bytes(size / pieces)} pieces" if size / pieces < _GOOD_PIECE else ""
        else:
            text = f"{engine} est. {_time(ns)}, {100 * share:.0f} %"
            cause = ""
        wait = waiting.get(line)
        if wait is not None:
            text += f"; {_wait_text(wait)}"
            if wait.ns > ns:
                cause = f"waits on {wait.cause_engine}"
        details = {f"{e} busy": _interval(answer, t * scale) for e, t in engines.items()}
        if wait is not None:
            details[f"{wait.engine} waits"] = _interval(answer, wait.ns / 1000)
        if line in plan.line_bytes:
            details["dma_bytes"] = executed(plan.line_bytes[line], "B")
        costs.append(LineCost(line, text, share, details, cause, engine))
    return [cost for cost in costs if cost.share is None or cost.share >= _WORTH / 10]


def _wait_text(wait: Wait) -> str:
    what = "for line" if wait.why == "operand" else "for room still in use on line"
    return f"{wait.engine} waits {_time(wait.ns)} {what} {wait.cause_line} ({wait.cause_engine})"


def cost_findings(answer: TimeEstimate) -> list[Finding]:
    """Return findings on transfers in small pieces and on tiles that do not fit, where they cost time."""
    return [*_small_transfers(answer), *_no_room(answer)]


def _no_room(answer: TimeEstimate) -> list[Finding]:
    residency = answer.schedule.residency
    moved = max(1, answer.schedule.read_bytes + answer.schedule.write_bytes)
    findings = [
        Finding(
            "capacity", line, "warning",
            f"Tiles made here do not fit in SBUF together with what else is alive: by estimate {_bytes(size)} are "
            f"{what}, {100 * size / moved:.0f} % of all bytes moved. Use them sooner or make them smaller.",
        )
        for sizes, what in (
            (residency.spilled, "written out and read back"), (residency.loaded_again, "loaded once more"),
        )
        for line, size in sorted(sizes.items())
        if size >= _WORTH * moved
    ]  # fmt: skip
    return [*findings, *crowded_banks(residency)]


def crowded_banks(residency: Residency) -> list[Finding]:
    """Return an error for each line at which more PSUM banks are alive than there are."""
    return [
        Finding(
            "capacity", line, "error",
            f"{banks} PSUM banks are alive here at once; there are {residency.banks}. Copy results to SBUF sooner or "
            "use smaller tiles.",
        )
        for line, banks in sorted(residency.crowded.items())
    ]  # fmt: skip


def _small_transfers(answer: TimeEstimate) -> list[Finding]:
    plan = answer.schedule
    transposing = {
        s.line for s in plan.residency.order if s.engine == DMA and s.instruction and s.instruction.transpose
    }
    findings = []
    for line, size in plan.line_bytes.items():
        piece = size / max(1, plan.line_descriptors.get(line, 1))
        busy = plan.lines[line].get(DMA, 0.0) / plan.total if plan.total else 0.0
        if piece < _GOOD_PIECE and busy >= _WORTH:
            advice = (
                "It transposes, so a larger tile changes nothing: load the tile as it lies in HBM and use "
                "nisa.nc_transpose. From trn2 on nisa.dma_transpose is fast for types of two bytes."
                if line in transposing
                else "Pieces of 2 KiB or more use them well: make the free dimension of the tile larger."
            )
            message = (
                f"This transfer moves pieces of {_bytes(piece)} and keeps the DMA engines busy for {100 * busy:.0f} % "
                f"of the time. {advice}"
            )
            severity: Severity = "warning" if busy >= _WORTH_A_WARNING else "information"
            findings.append(Finding("small-dma", line, severity, message))
    return findings


def _bytes(size: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KiB", 1024.0)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"


def _time(ns: float) -> str:
    return duration_text(ns / 1000)


def latency_cause(answer: TimeEstimate) -> str:
    """Return what the critical engine of a kernel bound by latency waits for longest: ``VectorE waits for line 16
    (ScalarE)``; empty for other kernels."""
    if answer.bound != "latency" or not answer.waits:
        return ""
    longest = answer.waits[0]
    return f"{longest.engine} waits for line {longest.cause_line} ({longest.cause_engine})"
