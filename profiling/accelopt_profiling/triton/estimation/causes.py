"""Report on the user's lines what takes a large part of a launch's estimate and can be avoided."""

from __future__ import annotations

from collections.abc import Callable

from accelopt_profiling.duration import duration_text
from accelopt_profiling.measurement import Finding
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.estimation.estimate import LaunchEstimate
from accelopt_profiling.triton.interpreter.counting import LaunchCounts, LineCounts

#: A part of the estimate that is worth a finding.
WORTH = 0.25
#: The same for what each program pays once: it is nobody's fault before it is most of the time.
MOST = 0.5


def cost_findings(
    counts: LaunchCounts, estimate: LaunchEstimate, target: GpuTarget, line: int
) -> list[Finding]:
    """Return ``contended-atomics``, ``slow-type``, ``integer-arithmetic``, ``exposed-latency`` and ``small-programs``,
    each on its line.

    ``line`` is the kernel's own, for what belongs to no other.
    """
    whole = estimate.latency.us or 0.0
    times = estimate.times_us
    findings = []
    if times["atomics"] >= WORTH * whole:
        where = _most(counts, lambda cost: cost.hottest) or line
        updates = counts.lines[where].hottest
        message = (
            f"{updates:,.0f} atomic updates go to one address, one after the other: about "
            f"{duration_text(times['atomics'])}. Sum in registers first, or spread them over several addresses."
        )
        findings.append(Finding("contended-atomics", where, "warning", message))
    if times["fp64"] >= WORTH * whole:
        where = _most(counts, lambda cost: cost.double_ops) or line
        share = target["peak.fp32"] / target["peak.fp64"]
        message = (
            f"fp64 runs at 1/{share:.0f} of the fp32 rate on {target.title}: about {duration_text(times['fp64'])}. "
            "Use fp32 where its precision is enough."
        )
        findings.append(Finding("slow-type", where, "warning", message))
    if times["integer"] >= WORTH * whole:
        where = max(estimate.integers_us, key=lambda number: estimate.integers_us[number]) or line
        message = (
            f"Integer operations take about {duration_text(times['integer'])}, most of them here. Divisions and "
            "remainders are up to 20 instructions each, random numbers about 60: divide once for a block, and use all "
            "four numbers of `tl.rand4x`."
        )
        findings.append(Finding("integer-arithmetic", where, "information", message))
    first = estimate.waits_us.get(0, 0.0)
    waited = {number: us for number, us in estimate.waits_us.items() if number}
    if waited and sum(waited.values()) >= WORTH * whole:
        where = max(waited, key=lambda number: waited[number])
        message = (
            f"Each iteration waits for this load: in all about {duration_text(waited[where])} that nothing fills. "
            "Load ahead (a pipelined loop, more stages), take more per iteration, or let more programs share a "
            "multiprocessor."
        )
        findings.append(Finding("exposed-latency", where, "information", message))
    if first + times["program starts"] >= MOST * whole and estimate.bound != "launch":
        message = (
            f"{counts.programs:,} short programs: starting them and waiting for their first loads takes about "
            f"{duration_text(first + times['program starts'])}. Let each program do more."
        )
        findings.append(Finding("small-programs", line, "information", message))
    return findings


def _most(counts: LaunchCounts, cost: Callable[[LineCounts], float]) -> int:
    """Return the line where ``cost`` is largest. 0 where the code is in no line of the user's file."""
    return max(counts.lines, key=lambda number: cost(counts.lines[number]), default=0)
