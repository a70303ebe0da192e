"""The receipt of one check: enough to understand the verdict, and to run it again."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.gate.cases import Case
from accelopt_profiling.gate.outcome import Evidence
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.hosts.host import HostFacts
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.receipt import Receipt

#: Raised whenever the gate decides differently about the same candidate.
GATE_VERSION = 1


def receipt_of(
    problem: ProblemRef, candidate_hash: str, original_hash: str, kernel: str, dialect: str, target: str,
    host: HostFacts, cases: list[Case], evidence: Evidence, accepted: bool, reasons: list[Reason],
    checks: list[dict[str, Any]],
) -> Receipt:  # fmt: skip
    """The receipt. The seeds are in it: the candidate has ended by now, and they make the draws repeatable."""
    tolerance = evidence.answered.tolerance if evidence.answered else None
    return Receipt(
        "gate",
        {
            "gate_version": GATE_VERSION,
            "source_hash": candidate_hash,
            "original_hash": original_hash,
            "problem": to_plain(problem),
            "problem_hash": problem.content_hash,
            "kernel": kernel,
            "dialect": dialect,
            "target": target,
            "host": {"name": host.name, "python": host.python, "versions": host.versions},
            "cases": [to_plain(case) for case in cases],
            "inputs": [{"case": d.name, "shapes": d.shapes, "dtypes": d.dtypes, "digests": d.digests, "shape": d.shape}
                       for d in evidence.drawn],
            "tolerance_stated": to_plain(tolerance),
            "checks": checks,
            "accepted": accepted,
            "reasons": to_plain(reasons),
        },
    )  # fmt: skip
