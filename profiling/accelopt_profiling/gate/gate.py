"""The gate, from the client's side: one job of four steps on a host, and the verdict from what they found."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from typing import Any

from accelopt_profiling.gate.cases import Case, CaseOptions, plan_cases
from accelopt_profiling.gate.draw import DrawnCase, DrawParams
from accelopt_profiling.gate.emulation import GateDialect
from accelopt_profiling.gate.evidence import receipt_of
from accelopt_profiling.gate.judge import JudgedCase, JudgeParams
from accelopt_profiling.gate.outcome import Evidence, decide, failed_step
from accelopt_profiling.gate.reach import hidden_modules, neutralised_names, runtime_of, without_problem
from accelopt_profiling.gate.reference import ReferenceParams, ReferenceResult
from accelopt_profiling.gate.run import RunCase, RunParams
from accelopt_profiling.gate.verdict import Reason, Verdict
from accelopt_profiling.hosts.host import Host, HostFacts, JobFailed
from accelopt_profiling.jobs import Job, Limits, Source, Step
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.receipt import Receipt

#: The problem's own steps get at least this long, whatever the candidate gets.
PROBLEM_SECONDS = 60.0


@dataclass(frozen=True)
class GateRequest:
    """``candidate`` and ``original`` are whole sources (see ``problems.found.source_for``) with the same kernel path;
    the problem's functions come from ``original`` alone. ``kernel`` is the kernel that was rewritten. ``limits`` hold
    for each step; the candidate's are ``limits``, the problem's own steps get at least a minute.
    """

    candidate: Source
    original: Source
    problem: ProblemRef
    kernel: str
    dialect: GateDialect
    target: str
    limits: Limits = Limits()
    options: CaseOptions = field(default_factory=CaseOptions)


async def check(host: Host, request: GateRequest) -> tuple[Verdict, Receipt]:
    """Decide whether a candidate is correct, complete and honest.

    The verdict's ``reasons`` say why it was refused; of an accepted one they say what is worth knowing (a case left
    out, a problem too loose to tell right from wrong). Every case is in ``checks``.

    Raises:
        HostUnreachable: the host could not be reached, or was lost; nothing is known about the candidate.
    """
    cases = plan_cases(request.options)
    facts = await host.facts()
    kernels = {k.name for k in find_kernels(request.candidate.files[request.candidate.kernel]).kernels}
    if request.dialect != "numpy" and request.kernel not in kernels:
        reason = Reason(
            "no-kernel", f"The candidate has no kernel {request.kernel}; it must rewrite it, not remove it."
        )
        return _conclude(request, facts, cases, Evidence(reasons=[reason]))
    evidence = Evidence()
    try:
        async for progress in host.run(_job(request, cases)):
            if progress.final:
                _keep(evidence, progress.step, progress.value)
            elif progress.step == "gate.run" and isinstance(progress.value, dict):
                evidence.running = progress.value.get("running")
    except JobFailed as failed:
        evidence.reasons.append(failed_step(failed.step, failed.error, _case_name(cases, evidence.running)))
    except ValueError as error:
        evidence.reasons.append(Reason("bad-answer", f"The host's answer cannot be read: {error}."))
    return _conclude(request, facts, cases, evidence)


def _job(request: GateRequest, cases: list[Case]) -> Job:
    candidate = without_problem(request)
    runtime = runtime_of(request)
    own = replace(request.limits, seconds=max(request.limits.seconds, PROBLEM_SECONDS))
    options = request.options
    drawing = DrawParams(
        request.problem, request.original, request.dialect, request.target, cases,
        options.large_bytes, options.input_bytes
    )  # fmt: skip
    running = RunParams(
        request.dialect, request.target, len(cases), options.interpret_seconds,
        hidden_modules(request), neutralised_names(request)
    )  # fmt: skip
    answering = ReferenceParams(
        request.problem, request.original, request.dialect, request.target, len(cases)
    )
    judging = JudgeParams(request.dialect, [case.distribution for case in cases])
    steps = [
        Step("gate.draw", runtime, to_plain(drawing), own),
        Step("gate.run", runtime, to_plain(running), request.limits),
        Step("gate.reference", runtime, to_plain(answering), own),
        Step("gate.judge", "numpy", to_plain(judging), own),
    ]
    return Job(candidate, steps)


def _keep(evidence: Evidence, step: str, value: Any) -> None:
    """Store a step's result.

    Raises:
        ValueError: it does not have the form that the step returns.
    """
    if step == "gate.draw":
        evidence.drawn = from_plain(_Listed, {"drawn": value}).drawn
    elif step == "gate.run":
        evidence.ran = from_plain(_Listed, {"ran": value}).ran
    elif step == "gate.reference":
        evidence.answered = from_plain(ReferenceResult, value)
    elif step == "gate.judge":
        evidence.judged = from_plain(_Listed, {"judged": _infinities(value)}).judged
        evidence.complete = True


@dataclass(frozen=True)
class _Listed:
    drawn: list[DrawnCase] = field(default_factory=list)
    ran: list[RunCase] = field(default_factory=list)
    judged: list[JudgedCase] = field(default_factory=list)


def _infinities(value: Any) -> Any:
    """JSON has no infinity: a missing error of a judged output was infinite."""
    if isinstance(value, list):
        return [_infinities(v) for v in value]
    if isinstance(value, dict):
        return {
            k: math.inf
            if v is None and k in ("relative", "whole", "row", "element", "max_abs")
            else _infinities(v)
            for k, v in value.items()
        }
    return value


def _case_name(cases: list[Case], index: Any) -> str:
    return cases[index].name if isinstance(index, int) and 0 <= index < len(cases) else ""


def _conclude(
    request: GateRequest, facts: HostFacts, cases: list[Case], evidence: Evidence
) -> tuple[Verdict, Receipt]:
    accepted, reasons, checks = decide(evidence, _launched_name(request))
    receipt = receipt_of(
        request.problem, _hash(request.candidate), _hash(request.original), request.kernel, request.dialect,
        request.target, facts, cases, evidence, accepted, reasons, checks,
    )  # fmt: skip
    return Verdict(accepted, reasons, checks, receipt.id), receipt


def _launched_name(request: GateRequest) -> str | None:
    """The kernel's own name, when it is one that host code launches."""
    found = {k.name: k for k in find_kernels(request.original.files[request.original.kernel]).kernels}
    kernel = found.get(request.kernel)
    return None if kernel is None or kernel.device_function else kernel.name.split("#")[0].split(".")[-1]


def _hash(source: Source) -> str:
    return hashlib.sha256(source.files[source.kernel].encode()).hexdigest()[:16]
