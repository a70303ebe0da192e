"""Receipts of checks: written from the evidence, read back as a request, and compared with one another."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from accelopt_profiling.comparison.tolerance import rule
from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.evidence import Evidence
from accelopt_profiling.gate.probes.conduct import LaunchOnTarget
from accelopt_profiling.gate.request import Case, CaseOptions, GateRequest
from accelopt_profiling.gate.scope import scope
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.hosts.host import HostFacts
from accelopt_profiling.jobs import JobFiles, Limits
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.receipt import Receipt


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


#: Raised whenever the gate decides differently about the same candidate.
GATE_VERSION = 9


def receipt_of(
    request: GateRequest, hashes: tuple[str, str], host: HostFacts, cases: list[Case], evidence: Evidence,
    verdict: Verdict, refused_by: list[str],
) -> Receipt:  # fmt: skip
    """Return the receipt.

    The seeds are in it: the candidate has ended by now, and they make the draws repeatable. So are both sources with
    the problem's files; ``hashes`` are those of the candidate's and the original's kernel file; ``refused_by`` names
    the probes that refuse.
    """
    tolerance = evidence.reference.tolerance if evidence.reference else None
    run = evidence.run
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
                "reference_work": evidence.reference.work if evidence.reference else {},
                "original_host_work": evidence.original.host_work if evidence.original else {},
            },
            "device": None if evidence.device is None else to_plain(evidence.device),
            "checks": verdict.checks,
            "launchable": to_plain(verdict.launchable),
            "scope": scope(verdict, request.dialect),
            "accepted": verdict.accepted,
            "reasons": to_plain(verdict.reasons),
            "refused_by": refused_by,
            "costs": costs(evidence),
        },
    )  # fmt: skip


def _files(source: JobFiles) -> Any:
    """Return a source without the folders of the machine that it was checked on."""
    return to_plain(JobFiles(source.kernel, source.files))


def request_of(receipt: Receipt) -> GateRequest:
    """Return the check that ``receipt`` is the evidence of, with the same seeds.

    Raises:
        ValueError, KeyError: the receipt does not hold what is needed (an older one holds no sources).
    """
    body = receipt.body
    candidate = from_plain(JobFiles, body["candidate"])
    original = candidate if body["original"] is None else from_plain(JobFiles, body["original"])
    for source in (candidate, original):
        if source.kernel not in source.files:
            raise ValueError(f"the file {source.kernel} is missing")
    problem = from_plain(ProblemRef, body["problem"])
    layout_of(problem)  # raises where this version does not know it
    return GateRequest(
        candidate, original, problem=problem, kernel=str(body["kernel"]), dialect=body["dialect"],
        target=str(body["target"]), limits=from_plain(Limits, body["limits"]), options=_options(body["options"]),
        cases=[_case(case) for case in body["cases"]],
    )  # fmt: skip


def _options(body: dict[str, Any]) -> CaseOptions:
    options = from_plain(CaseOptions, body)
    return options if "budget" in body else replace(options, budget=from_plain(GateBudget, body))


#: How receipts of September 2026 and before name the sizes of a case, and the probe of that name.
_OLDER_SIZES = {"derived": "derived shape", "beyond": "beyond a limit"}


def _case(body: dict[str, Any]) -> Case:
    case = from_plain(Case, body)
    if body.get("reduced"):
        return replace(case, sizes="smaller sizes")
    for key, name in _OLDER_SIZES.items():
        if isinstance(body.get(key), int):
            return replace(case, sizes=name, number=body[key])
    return case


def differences(then: Receipt, now: Receipt) -> list[tuple[str, Any, Any]]:
    """Return the differences in outcome: a name, and its value in each receipt. Times are no difference."""
    changes: list[tuple[str, Any, Any]] = []
    for name, read in (("accepted", _accepted), ("reasons", _codes), ("inputs", _inputs)):
        before, after = read(then), read(now)
        if before != after:
            changes.append((name, before, after))
    outcomes = [{check["case"]: _told(check) for check in r.body["checks"]} for r in (then, now)]
    for case in outcomes[0].keys() | outcomes[1].keys():
        if outcomes[0].get(case) != outcomes[1].get(case):
            changes.append((f"the case {case!r}", outcomes[0].get(case), outcomes[1].get(case)))
    return changes


def _told(check: dict[str, Any]) -> str:
    """Return a case's outcome and why, in one text as in receipts of November 2026 and before."""
    outcome, why = str(check.get("outcome")), check.get("why")
    return f"{outcome}: {why}" if why else outcome


def _accepted(receipt: Receipt) -> bool:
    return bool(receipt.body["accepted"])


def _codes(receipt: Receipt) -> list[str]:
    return sorted({str(reason["code"]) for reason in receipt.body["reasons"]})


def _inputs(receipt: Receipt) -> list[Any]:
    return [[drawn["case"], drawn["digests"]] for drawn in receipt.body["inputs"]]
