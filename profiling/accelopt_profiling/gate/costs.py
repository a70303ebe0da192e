"""Say which probe took how much of a check: processor seconds of the steps, by the name of a probe."""

from __future__ import annotations

from collections import defaultdict

from accelopt_profiling.gate.evidence import Evidence
from accelopt_profiling.gate.probes.conduct import LaunchOnTarget


def costs(evidence: Evidence) -> dict[str, float]:
    """Return the processor seconds of each probe: of its cases in every step, of its further calls, and of judging
    them. What no probe asked for, such as starting processes, is in none.
    """
    seconds: dict[str, float] = defaultdict(float)
    probes = {drawn.index: drawn.probe for drawn in evidence.drawn}
    run, reference = evidence.run, evidence.reference
    for case in [*evidence.drawn, *(run.cases if run else ()), *(reference.cases if reference else ())]:
        seconds[probes.get(case.index, "")] += case.busy
    for busy in [run.busy if run else {}, *(verdict.busy for verdict in evidence.verdicts)]:
        for name, spent in busy.items():
            seconds[name] += spent
    if evidence.launch is not None:
        seconds[LaunchOnTarget.name] += evidence.launch.busy
    return {name: round(spent, 6) for name, spent in seconds.items() if name and spent}
