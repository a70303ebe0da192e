"""Check a candidate: read its text, run the gate's steps as one job on a host, and decide from the evidence."""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from dataclasses import replace
from typing import Any

from accelopt_profiling.gate.candidate_files import (
    hidden_modules,
    neutralised_names,
    runtime_of,
    unchanged_files,
    without_problem,
)
from accelopt_profiling.gate.cases import plan_cases
from accelopt_profiling.gate.decision import decide
from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
from accelopt_profiling.gate.near_limit import draws_again, near_cases, settle
from accelopt_profiling.gate.probes.registry import SIZES
from accelopt_profiling.gate.reading.facts import StaticFinding
from accelopt_profiling.gate.reading.reach import unreached_changes
from accelopt_profiling.gate.reading.read import limits_of_sizes, named_values, read, uses_files
from accelopt_profiling.gate.receipts import receipt_of
from accelopt_profiling.gate.request import Case, GateRequest, Tell, untold
from accelopt_profiling.gate.step_failures import failed_step, is_problem_fault
from accelopt_profiling.gate.step_schemas import (
    CaseVerdict,
    DeviceRunParams,
    DeviceRunResult,
    DrawnCase,
    DrawParams,
    FarParams,
    JudgeParams,
    LaunchResult,
    OriginalParams,
    OriginalResult,
    PlanParams,
    PlanResult,
    ReferenceParams,
    ReferenceResult,
    RunParams,
    RunResult,
    StepParams,
)
from accelopt_profiling.gate.verdict import Refusal, Verdict
from accelopt_profiling.hosts.host import Host, HostFacts, JobFailedError
from accelopt_profiling.jobs import Job, JobFiles, Step
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Launchability
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.problems.discovery.imports import with_imports
from accelopt_profiling.problems.problem import Call
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.waiting import interruptible


async def check(host: Host, request: GateRequest, tell: Tell = untold) -> tuple[Verdict, Receipt]:
    """Decide whether a candidate is correct, complete and honest. ``tell`` gets each step in words when it begins.

    The verdict's ``reasons`` say why it was refused; of an accepted one they say what is worth knowing (a case left
    out, a problem too loose to tell right from wrong). Every case is in ``checks``.

    Raises:
        HostUnreachableError: the host could not be reached, or was lost; nothing is known about the candidate.
    """
    tell("reading its text")
    request = await interruptible(_whole, request)
    text = request.candidate.files[request.candidate.kernel]
    before = request.original.files[request.original.kernel]
    evidence = Evidence(findings=await interruptible(read, text, before))
    evidence.reasons += _refusals(request, evidence)
    evidence.limits = await interruptible(limits_of_sizes, text, before)
    cases = request.cases or plan_cases(
        request.options, _planned(request), bool(evidence.limits), _rewritten(request)
    )
    facts = await host.facts()
    if evidence.reasons:
        return _conclude(request, facts, cases, evidence)
    seed = cases[0].seed
    await _run(host, await interruptible(_job, request, cases, facts, seed), cases, evidence, tell)
    if _rewritten(request):
        evidence.findings += await interruptible(_unreached, text, before, evidence)
    near = near_cases(evidence, decide(evidence, _kernels(request)).reasons, _rewritten(request))
    if near:
        again, draws = Evidence(), draws_again(evidence, cases, near)
        further = [case for drawn in draws.values() for case in drawn]
        measuring = await interruptible(_job, request, further, facts, seed, True)
        await _run(host, measuring, further, again, lambda step: tell(f"{step} once more"))
        decision = decide(again, _kernels(request))
        other = next((r for r in decision.reasons if r.code != "wrong-result"), None)
        if decision.accepted or other is None:
            settle(evidence, draws, again)
        else:
            evidence.unsettled = other.message
    return _conclude(request, facts, cases, evidence)


async def _run(host: Host, job: Job, cases: list[Case], evidence: Evidence, tell: Tell) -> None:
    """Run the steps of a check and add what they answer to ``evidence``."""
    following = iter(job.steps)

    def tell_next() -> None:
        if (step := next(following, None)) is not None:
            tell(_ANSWERS[step.name][2])

    try:
        tell_next()
        started = time.perf_counter()
        async with contextlib.aclosing(host.run(job)) as messages:
            async for progress in messages:
                if progress.final:
                    evidence.steps[progress.step] = time.perf_counter() - started
                    started = time.perf_counter()
                    _keep(evidence, progress.step, progress.value)
                    tell_next()
                elif progress.step in ("gate.run", "gate.device") and isinstance(progress.value, dict):
                    _hear(evidence, progress.value)
    except JobFailedError as failed:
        if failed.step != "gate.far" and not evidence.reasons:
            evidence.invalid_problem = is_problem_fault(failed.step, failed.error)
            case = _case(cases, evidence.running)
            reason = failed_step(failed.step, failed.error, case.name if case else "")
            probe = (case.sizes or case.distribution) if case and failed.step == "gate.run" else ""
            evidence.reasons.append(Refusal(reason.code, reason.message, probe))
    except ValueError as error:
        evidence.reasons.append(Refusal("bad-answer", f"The host's answer cannot be read: {error}."))


#: Styles of calls that go through a function or class of the file, by its name.
_NAMED = ("returns", "destination", "model", "launch")


def _unreached(text: str, original: str, evidence: Evidence) -> list[StaticFinding]:
    """Return what a rewrite changes beside what the drawn calls reach and the launched kernels."""
    calls = [from_plain(Call, drawn.call) for drawn in evidence.drawn if drawn.call]
    if not calls or any(call.style not in _NAMED for call in calls):
        return []
    roots = {part for call in calls for part in (call.function.split(".")[0], call.member, *call.methods)}
    kernels = (
        {name.split(".")[-1] for case in evidence.run.cases for name in case.launched or []}
        if evidence.run
        else set()
    )
    return list(unreached_changes(text, original, roots | kernels))


def _whole(request: GateRequest) -> GateRequest:
    """Return the request with every file of the project that it needs, so that its receipt can be replayed
    anywhere."""
    return replace(
        request, candidate=with_imports(request.candidate), original=with_imports(request.original)
    )


def _refusals(request: GateRequest, evidence: Evidence) -> list[Refusal]:
    """Return the reasons to refuse a candidate before it is run."""
    source = find_kernels(request.candidate.files[request.candidate.kernel])
    if (fault := source.syntax_error) is not None:
        return [Refusal("does-not-parse", f"{fault.message} (line {fault.line})")]
    if request.dialect != "numpy" and not _launchable(request):
        name = f" {request.kernel}" if request.kernel else ""
        message = f"The candidate has no {request.dialect} kernel{name}; it must rewrite it, not remove it."
        return [Refusal("no-kernel", message)]
    certain = [f for f in evidence.findings if f.certain and request.options.reading]
    return [Refusal(f.code, f"{f.message} (line {f.line})", f"reading: {f.code}") for f in certain]


def _hear(evidence: Evidence, value: dict[str, Any]) -> None:
    """A message of the candidate's process: where it is, what it saved, or what it did that it may not."""
    if "running" in value:
        evidence.running = value["running"]
    saved, violation = value.get("saved"), value.get("violation")
    if isinstance(saved, list) and len(saved) == 3:
        evidence.output_digests.setdefault((int(saved[0]), str(saved[1])), str(saved[2]))
    if isinstance(violation, dict):
        message = f"{violation.get('message')} It was ended there."
        evidence.reasons.append(Refusal(str(violation.get("code")), message, "sandbox"))


def _device_step(request: GateRequest, cases: list[Case], facts: HostFacts) -> list[Step]:
    """Return the step that runs the candidate on the host's Trainium, where it has one."""
    if (
        request.dialect != "nki"
        or not facts.resources.get("neuron_devices")
        or layout_of(request.problem).runs_itself
    ):
        return []
    params = DeviceRunParams(request.dialect, request.target, len(cases), request.options.budget)
    limits = replace(
        request.limits, seconds=max(request.options.budget.device_seconds, request.limits.seconds)
    )
    return [Step("gate.device", runtime_of(request), to_plain(params), limits, device=True)]


def _job(request: GateRequest, cases: list[Case], facts: HostFacts, seed: int, measured: bool = False) -> Job:
    """Return the steps of a check whose first case has this ``seed``.

    With ``measured`` the original runs in every case, so that its own error is known.
    """
    candidate = without_problem(request)
    runtime = runtime_of(request)
    budget = request.options.budget
    whole = replace(request.limits, seconds=budget.busy * budget.all_cases * request.limits.seconds)
    own = replace(whole, seconds=max(whole.seconds, budget.problem_seconds))
    drawing = DrawParams(
        request.problem,
        request.original,
        dialect=request.dialect,
        target=request.target,
        cases=cases,
        seed=seed,
        shapes=request.options.shapes,
        budget=budget,
        limits=limits_of_sizes(*_texts(request)),
        numbers=named_values(*_texts(request)),
        far=_counts_wide(request),
    )
    common = (request.dialect, request.target, len(cases), budget)
    running = RunParams(
        *common, hidden_modules(request), neutralised_names(request), request.limits.seconds,
        _derived_seed("loops", cases),
        unchanged_files(request) if _rewritten(request) else [], _original_uses_files(request),
    )  # fmt: skip
    planning = PlanParams(*common, request.original, _derived_seed("programs", cases))
    comparing = OriginalParams(
        *common, request.original, not _rewritten(request), measured, running.loop_order
    )
    answering = ReferenceParams(*common, request.problem, request.original)
    judging = JudgeParams(
        request.dialect,
        [case.distribution for case in cases],
        [n for n, case in enumerate(cases) if case.sizes and not SIZES[case.sizes].stands_in],
        alone=not _rewritten(request),
        replaces=layout_of(request.problem).replaces,
    )
    steps = [
        Step("gate.draw", runtime, to_plain(drawing), own),
        *([Step("gate.plan", runtime, to_plain(planning), own)] if _planned(request) else []),
        Step("gate.run", runtime, to_plain(running), whole),
        *_device_step(request, cases, facts),
        *([Step("gate.original", runtime, to_plain(comparing), own)] if _rewritten(request) else []),
        Step("gate.reference", runtime, to_plain(answering), own),
        Step("gate.judge", "numpy", to_plain(judging), own),
    ]
    if request.dialect != "numpy" and not measured:
        steps.append(Step("gate.launch", runtime, to_plain(StepParams(*common)), whole))
    if request.dialect == "triton" and _rewritten(request) and not measured and _counts_wide(request):
        limits = replace(request.limits, memory_bytes=budget.far_bytes, seconds=budget.far_seconds)
        steps.append(Step("gate.far", runtime, to_plain(FarParams(*common, request.original)), limits))
    return Job(candidate, steps)


def _texts(request: GateRequest) -> tuple[str, str]:
    """Return the texts of the candidate and of the original."""
    name = request.candidate.kernel
    return request.candidate.files[name], request.original.files[name]


def _planned(request: GateRequest) -> bool:
    """Check whether the original says how much of each case is interpreted."""
    return request.dialect == "triton" and _differs(request)


def _rewritten(request: GateRequest) -> bool:
    """Check whether the original is run beside the candidate.

    Of a file that runs itself it is the reference.
    """
    return not layout_of(request.problem).runs_itself and _differs(request)


def _original_uses_files(request: GateRequest) -> bool:
    """Check whether there is an original, and it, or what it imports of its project, reads or writes files."""
    has_original = layout_of(request.problem).runs_itself or _differs(request)
    files = request.original.files.items()
    return has_original and any(uses_files(text) for name, text in files if name != request.problem.path)


def _counts_wide(request: GateRequest) -> bool:
    """Check whether the text of the original shows that it counts in 64 bits."""
    return "int64" in _texts(request)[1]


def _differs(request: GateRequest) -> bool:
    original = request.original.files[request.original.kernel]
    return request.candidate.files[request.candidate.kernel] != original


def _derived_seed(what: str, cases: list[Case]) -> int:
    """Return a further seed, for ``what``: made of the first case's, which does not follow from it."""
    return int.from_bytes(hashlib.sha256(f"{what} {cases[0].seed}".encode()).digest()[:8], "big")


#: Where the evidence holds a step's answer, its type, and what a person reads while the step runs.
_ANSWERS: dict[str, tuple[str, Any, str]] = {
    "gate.draw": ("drawn", list[DrawnCase], "drawing inputs"),
    "gate.plan": ("plan", PlanResult, "counting the original's work"),
    "gate.run": ("run", RunResult, "running it"),
    "gate.device": ("device", DeviceRunResult, "running it on the device"),
    "gate.original": ("original", OriginalResult, "running the original"),
    "gate.reference": ("reference", ReferenceResult, "running the reference"),
    "gate.judge": ("verdicts", list[CaseVerdict], "comparing outputs"),
    "gate.launch": ("launch", LaunchResult, "trying its launch"),
    "gate.far": ("far", dict[str, str], "reading addresses at large sizes"),
}


def _keep(evidence: Evidence, step: str, value: Any) -> None:
    """Store a step's result.

    Raises:
        ValueError: it does not have the form that the step returns.
    """
    name, answer, _ = _ANSWERS[step]
    judged = step == "gate.judge"
    setattr(evidence, name, from_plain(answer, _infinities(value) if judged else value))
    evidence.complete = evidence.complete or judged


def _infinities(value: Any) -> Any:
    """JSON has no infinity: a missing error of a judged output was infinite."""
    if isinstance(value, list):
        return [_infinities(v) for v in value]
    if isinstance(value, dict):
        return {
            k: math.inf
            if v is None and k in ("relative", "whole", "row", "element", "max_abs", "own_ratio")
            else _infinities(v)
            for k, v in value.items()
        }
    return value


def _case(cases: list[Case], index: Any) -> Case | None:
    return cases[index] if isinstance(index, int) and 0 <= index < len(cases) else None


def _conclude(
    request: GateRequest, facts: HostFacts, cases: list[Case], evidence: Evidence
) -> tuple[Verdict, Receipt]:
    decision = decide(evidence, _kernels(request))
    hashes = (_hash(request.candidate), _hash(request.original))
    launchable = evidence.launch.launchable if evidence.launch else Launchability(detail="not asked for")
    verdict = Verdict(
        decision.accepted,
        decision.reasons,
        checks=decision.checks,
        receipt=None,
        invalid_problem=evidence.invalid_problem,
        launchable=launchable,
    )
    receipt = receipt_of(
        request,
        hashes,
        host=facts,
        cases=cases,
        evidence=evidence,
        verdict=verdict,
        refused_by=decision.refused_by,
    )
    return replace(verdict, receipt=receipt.id), receipt


def _kernels(request: GateRequest) -> CandidateKernels:
    kernel = next((n for n in _launchable(request) if n == _plain(request.kernel)), "")
    runs_itself = layout_of(request.problem).runs_itself
    return CandidateKernels(_launchable(request), kernel, _rewritten(request), runs_itself)


def _launchable(request: GateRequest) -> list[str]:
    """Return the plain names of the candidate's kernels that host code launches."""
    kernels = find_kernels(request.candidate.files[request.candidate.kernel]).kernels
    return sorted({_plain(k.name) for k in kernels if not k.device_function and k.dialect == request.dialect})


def _plain(name: str) -> str:
    return name.split("#")[0].split(".")[-1]


def _hash(source: JobFiles) -> str:
    return hashlib.sha256(source.files[source.kernel].encode()).hexdigest()[:16]
