"""The receipt of one check: enough to understand the verdict, and to run it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accelopt_profiling.comparison.tolerance import rule
from accelopt_profiling.gate.cases import Case
from accelopt_profiling.gate.outcome import Evidence
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.hosts.host import HostFacts
from accelopt_profiling.jobs import Source
from accelopt_profiling.plain import to_plain
from accelopt_profiling.receipt import Receipt

if TYPE_CHECKING:
    from accelopt_profiling.gate.gate import GateRequest

#: Raised whenever the gate decides differently about the same candidate.
GATE_VERSION = 2


def receipt_of(
    request: GateRequest, hashes: tuple[str, str], host: HostFacts, cases: list[Case], evidence: Evidence,
    accepted: bool, reasons: list[Reason], checks: list[dict[str, Any]],
) -> Receipt:  # fmt: skip
    """The receipt. The seeds are in it: the candidate has ended by now, and they make the draws repeatable. So are both
    sources with the problem's files; ``hashes`` are those of the candidate's and the original's kernel file.
    """
    tolerance = evidence.answered.tolerance if evidence.answered else None
    run = evidence.ran
    return Receipt(
        "gate",
        {
            "gate_version": GATE_VERSION,
            "source_hash": hashes[0],
            "original_hash": hashes[1],
            "candidate": _files(request.candidate),
            "original": _files(request.original) if hashes[0] != hashes[1] else None,
            "problem": to_plain(request.problem),
            "problem_hash": request.problem.content_hash,
            "kernel": request.kernel,
            "dialect": request.dialect,
            "target": request.target,
            "limits": to_plain(request.limits),
            "options": to_plain(request.options),
            "host": {"name": host.name, "python": host.python, "versions": host.versions, "devices": host.devices},
            "cases": [to_plain(case) for case in cases],
            "inputs": [{"case": d.name, "shapes": d.shapes, "dtypes": d.dtypes, "digests": d.digests, "shape": d.shape}
                       for d in evidence.drawn],
            "tolerance_stated": to_plain(tolerance),
            "tolerance_rule": rule(),
            "findings": [to_plain(finding) for finding in evidence.findings],
            "precision": sorted({f.message for f in evidence.findings if f.code == "low-precision"}),
            "steps": {name: round(seconds, 3) for name, seconds in evidence.steps.items()},
            "timer": "wall clock of the host; the gate checks, it does not time kernels",
            "conduct": None if run is None else {
                "calls": run.calls, "patched": run.patched, "threads": run.threads, "processes": run.processes,
                "host_work": run.host_work, "moved_only": run.moved_only, "late": run.late,
                "attributes": run.attributes,
                "reference_work": evidence.answered.work if evidence.answered else {},
                "original_host_work": evidence.original.host_work if evidence.original else {},
            },
            "checks": checks,
            "accepted": accepted,
            "reasons": to_plain(reasons),
        },
    )  # fmt: skip


def _files(source: Source) -> Any:
    """A source without the folders of the machine that it was checked on."""
    return to_plain(Source(source.kernel, source.files))
