"""Searches faster versions of the kernels of a file: the entry point for the editor and the command line."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from accelopt_agent.evaluation.evaluators import (
    CostEvaluator,
    CostUnavailableError,
    EvaluatorLostError,
    GateEvaluator,
)
from accelopt_agent.evaluation.host_evaluation import HostCost, HostGate
from accelopt_agent.events import (
    BaselineMeasured,
    CandidateJudged,
    CandidateTried,
    Ending,
    Event,
    Finished,
    KernelSkipped,
    ProgressText,
    SuggestionFound,
)
from accelopt_agent.model.client import ModelQuery, query_model
from accelopt_agent.model.consent import is_loopback
from accelopt_agent.model.experience_source import ExperienceSource
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.model.team import ROLES, ModelTeam, same_for_all
from accelopt_agent.repetition import RepeatedSteps, RepeatedVersion
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.rules.catalogue import RuleProposer
from accelopt_agent.search.budget import BudgetExhaustedError, Meter
from accelopt_agent.search.control import (
    PATIENCE,
    OutOfTimeError,
    SearchControl,
    SearchStoppedError,
    until_stopped,
)
from accelopt_agent.search.kernel_search import KernelSearch
from accelopt_agent.search.node import Node
from accelopt_agent.search.paid import PaidWork, run_content
from accelopt_agent.search.proposer import Proposer
from accelopt_agent.search.recorder import BASELINE, CONTENT, PROCESS, REPEATS, RESUMES, Recorder
from accelopt_agent.search.search_run import LayOut, SearchRun, as_written
from accelopt_agent.search.strategies import LEARNING, strategy_named
from accelopt_agent.transfer.proposer import MemoryProposer
from accelopt_memory.memory import Memory
from accelopt_memory.records import RunStatus
from accelopt_profiling.hosts.host import Host, HostFacts, HostUnreachableError
from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.measurement import NO_TIME, OWN_FAULTS, FileMeasurement, KernelMeasurement
from accelopt_profiling.problem_inference import infer_problem
from accelopt_profiling.problems.inference.inferred import InferredProblem, lacks_problem
from accelopt_profiling.waiting import interruptible, within

#: So many causes of failures are told, and so much of a cause tells it from others.
CAUSES_SHOWN, CAUSE_CHARACTERS = 5, 60
_VARYING = re.compile(r"'[^']*'|\d[\d.,e+-]*")


class RunSummary:
    """Counts a run's events and sums them up in one line.

    ``kernels`` are those of the request; ``asks_a_model`` says that the run has other sources than rules.
    """

    def __init__(self, kernels: Sequence[Kernel], asks_a_model: bool) -> None:
        self._kernels, self._asks_a_model = {k.name: k for k in kernels}, asks_a_model
        self._searched: list[Kernel] = []
        self._outcomes: Counter[str] = Counter()
        self._refused = 0
        self._causes: Counter[str] = Counter()
        self._example: dict[str, str] = {}
        self._skipped: dict[str, str] = {}
        self._unchecked: dict[str, CandidateTried] = {}
        self.found = 0

    def take(self, event: Event) -> None:
        if isinstance(event, BaselineMeasured) and event.kernel in self._kernels:
            self._searched.append(self._kernels[event.kernel])
        elif isinstance(event, CandidateTried):
            self._outcomes[event.outcome] += 1
            if event.outcome == "faster":
                self._unchecked[event.candidate.id] = event
            if event.outcome == "failed":
                self._note(event.detail)
        elif isinstance(event, CandidateJudged):
            self._unchecked.pop(event.candidate.id, None)
            self._refused += not event.verdict.accepted
            if not event.verdict.accepted:
                self._note(
                    event.verdict.reasons[0].message if event.verdict.reasons else "refused by the gate"
                )
        elif isinstance(event, KernelSkipped):
            self._skipped[event.kernel] = event.text
        elif isinstance(event, SuggestionFound):
            self.found += 1

    @property
    def unchecked(self) -> tuple[CandidateTried, ...]:
        """The versions that are faster by their cost and have no verdict, the fastest first."""
        return tuple(sorted(self._unchecked.values(), key=lambda tried: tried.latency.us or 0.0))

    def failures(self) -> list[str]:
        """Return why versions failed or were refused, those with one cause together, the most frequent first."""
        counts = self._causes.most_common(CAUSES_SHOWN)
        return [f"{count} failed: {self._example[cause]}" for cause, count in counts]

    def _note(self, cause: str) -> None:
        line = " ".join(cause.split()) or "without a reason"
        key = _VARYING.sub("#", line.lower())[:CAUSE_CHARACTERS]
        self._causes[key] += 1
        self._example.setdefault(key, line if len(line) <= 200 else f"{line[:197]}...")

    def text(self, ending: Ending = "done") -> str:
        """Return what the run came to, as one line. Of one that was not done, so far."""
        waiting = len(self._unchecked)
        more = f", {waiting} faster version{'' if waiting == 1 else 's'} not checked yet" if waiting else ""
        if self.found:
            count = f"{self.found} suggestion{'' if self.found == 1 else 's'}"
            return count if ending == "done" else count + more
        if self._skipped and self._skipped.keys() == self._kernels.keys():
            return f"not searched: {'; '.join(dict.fromkeys(self._skipped.values()))}"
        if ending != "done":
            if not self._searched and not self._skipped:
                return "nothing was tried: the original was not measured yet"
            return f"no suggestion so far{more}"
        why = self._why()
        return f"nothing faster found ({why})" if why else "nothing faster found"

    def _why(self) -> str:
        tried, unclear = self._outcomes.total(), self._outcomes["unclear"]
        if self._refused:
            return f"{self._refused} refused by the gate"
        if faster := self._outcomes["faster"]:
            return f"{faster} of {tried} faster by their cost, none of them checked"
        if unclear:
            which = (
                "it made"
                if tried == 1
                else f"{unclear} of {tried} made"
                if unclear < tried
                else f"all {tried} made"
            )
            return f"{which} no difference that is larger than noise"
        if tried or not self._searched:
            return ""
        return "no rewrite was proposed" if self._asks_a_model else "no rule applies"


async def optimize(
    request: OptimizeRequest,
    host: Host,
    memory: Memory | None,
    *,
    model: ModelSettings | ModelTeam | None = None,
    query: ModelQuery = query_model,
    control: SearchControl | None = None,
    lay_out: LayOut = as_written,
) -> AsyncGenerator[Event, None]:
    """Search on ``host`` and yield events, the last one always being ``Finished``.

    A ``model`` takes all roles of the team; a ``ModelTeam`` names one for each. ``query`` sends the queries to them.
    ``lay_out`` formats what is offered.
    While ``control`` is on, no new step is started. When it is stopped, or the time of the budget is up, the search
    ends with what it has, whatever still runs.

    Closing the iterator, or cancelling the task that waits for it, ends the search and its jobs at once; the run is
    then recorded as cancelled. Expected failures are reported as events; none is raised.
    """
    control, meter = control or SearchControl(), Meter(request.budget)
    if not request.inferred and lacks_problem(request.kernel_file(), _launched(request)):
        yield ProgressText("No problem was found: arguments are being inferred.")
        problems = until_stopped(_inferred(request, host), control, meter.time_left)
        with suppress(SearchStoppedError, OutOfTimeError):  # which ends the search below as well
            async with aclosing(problems):
                async for problem in problems:
                    request = replace(request, inferred=(*request.inferred, problem))
    if request.inferred:
        entries = ", ".join(p.entry for p in request.inferred)
        yield ProgressText(
            f"The arguments of {entries} were inferred; faster versions must do what the original does."
        )
    cost, gate = HostCost(host, request, all_kernels=model is not None), HostGate(host, request)
    events = drive(
        request,
        cost,
        gate=gate,
        memory=memory,
        host=host.name,
        proposers=lambda meter: _proposers(request, memory, model=model, meter=meter, query=query),
        control=control,
        asks_a_model=model is not None,
        meter=meter,
        facts=host.facts,
        lay_out=lay_out,
    )
    async with aclosing(events):
        async for event in events:
            yield event


async def _inferred(request: OptimizeRequest, host: Host) -> AsyncGenerator[InferredProblem, None]:
    """Yield problems that launch the kernels of a file without one, as few as do. For a kernel of which none is found,
    or where the host is lost, there is none, which the baseline then says."""
    file, kernels = request.kernel_file(), _launched(request)
    while kernels:
        try:
            problem = await infer_problem(
                host, file, kernels=kernels, target=request.target, limits=request.limits
            )
        except HostUnreachableError:
            return
        launched = [k for k in kernels if k.name in problem.launched]
        if launched:
            yield problem
        kernels = [k for k in kernels if k not in (launched or kernels[:1])]


def _proposers(
    request: OptimizeRequest,
    memory: Memory | None,
    model: ModelSettings | ModelTeam | None,
    meter: Meter,
    query: ModelQuery,
) -> list[Proposer]:
    if request.repetition is not None:
        return [RepeatedSteps(request.repetition, request.target)]
    proposers: list[Proposer] = []
    if memory is not None:
        proposers.append(MemoryProposer(memory))
    proposers.append(RuleProposer(request.target))
    if model is not None:
        team = model if isinstance(model, ModelTeam) else same_for_all(model)
        experience = _experience(request, memory, team)
        proposers.append(
            ModelProposer(
                team, meter, request.target, wishes=request.instructions, query=query,
                file=request.kernel_file, experience=experience,
            )
        )  # fmt: skip
    return [proposer for proposer in proposers if proposer.name in request.plan.sources]


def _experience(request: OptimizeRequest, memory: Memory | None, team: ModelTeam) -> ExperienceSource:
    """Return what the team may be told of the memory: code of the project that it may see anyway, and of every
    project where nothing leaves this machine."""
    roles = [team.of(role) for role in ROLES]
    here = all(is_loopback(role.base_url) for role in roles)
    return ExperienceSource(
        memory,
        request.target,
        request.plan.experience,
        within=None if here else request.file.project_root or request.path.parent,
        share="kernel" if any(role.share == "kernel" for role in roles) else "file",
        seed=request.plan.seed,
    )


#: What the memory is told of an ending.
_STATUS: dict[Ending, RunStatus] = {
    "done": "finished", "early": "finished", "stopped": "cancelled", "failed": "failed",
}  # fmt: skip


async def drive(
    request: OptimizeRequest,
    cost: CostEvaluator,
    gate: GateEvaluator,
    memory: Memory | None,
    host: str,
    proposers: Callable[[Meter], Sequence[Proposer]],
    control: SearchControl | None = None,
    asks_a_model: bool = True,
    meter: Meter | None = None,
    facts: Callable[[], Awaitable[HostFacts]] | None = None,
    lay_out: LayOut = as_written,
) -> AsyncGenerator[Event, None]:
    """Run ``optimize`` with the given evaluators and proposers; needs no host.

    ``facts`` are those of the one that ``host`` names.
    """
    recorder, control = Recorder(memory), control or SearchControl()
    ending: Ending = "stopped"
    reason = "stopped"  # unless another end follows: its caller went away
    meter = meter or Meter(request.budget)
    meter.paid = PaidWork(recorder, request, host, facts)
    kernels = _launched(request)
    summary = RunSummary(kernels, asks_a_model)

    async def begun() -> AsyncGenerator[Event, None]:
        await _begin(request, kernels, recorder, host)
        if request.resume:
            yield ProgressText(
                "What earlier searches measured, checked and asked for the same texts and conditions is taken over; "
                "the budget begins anew."
            )
        shared = SearchRun(
            request,
            cost,
            gate=gate,
            recorder=recorder,
            meter=meter,
            id=recorder.run,
            host=host,
            control=control,
            lay_out=lay_out,
        )
        async with aclosing(_all_kernels(shared, kernels, proposers)) as events:
            async for event in events:
                yield event

    try:
        async with aclosing(until_stopped(begun(), control, meter.time_left)) as events:
            async for event in events:
                summary.take(event)
                yield event
        ending, reason = "done", summary.text()
    except (BudgetExhaustedError, OutOfTimeError) as spent:
        ending = "early" if meter.seconds_left == 0.0 else "done"
        reason = f"{summary.text(ending)}: {meter.spent() or spent}"
    except SearchStoppedError as stop:
        ending, reason = "stopped", f"{summary.text('stopped')}: {stop}"
    except (EvaluatorLostError, CostUnavailableError) as error:
        ending, reason = "failed", str(error)
    except BaseException as error:
        if isinstance(error, Exception):
            ending, reason = "failed", f"{type(error).__name__}: {error}"
        raise
    finally:
        result = {
            "reason": reason,
            "ending": ending,
            "usage": meter.usage,
            "suggestions": summary.found,
            "calls": meter.calls,
        }
        with suppress(TimeoutError, asyncio.TimeoutError):
            await within(PATIENCE, recorder.finish(_STATUS[ending], result))
    if trouble := recorder.new_trouble():
        yield ProgressText(trouble)
    for line in summary.failures():
        yield ProgressText(line)
    unchecked = summary.unchecked if ending != "done" else ()
    yield Finished(
        recorder.run, reason, usage=meter.usage, calls=tuple(meter.calls), ending=ending, unchecked=unchecked
    )


async def _begin(request: OptimizeRequest, kernels: Sequence[Kernel], recorder: Recorder, host: str) -> None:
    """Begin the run in the memory."""
    name, content = (kernels[0].name, kernels[0].content_hash) if kernels else ("", "")
    options: dict[str, Any] = {
        "budget": request.budget,
        "depth": request.plan.composed,
        "strategy": request.plan.strategy,
        "instructions": request.instructions,
        PROCESS: os.getpid(),
        RESUMES: request.resume,
        CONTENT: await interruptible(run_content, request),
        **({REPEATS: request.repetition.suggestion.id} if request.repetition is not None else {}),
    }
    await recorder.start(str(request.path), name, content, request.target, host, options)


async def _all_kernels(
    run: SearchRun, kernels: list[Kernel], proposers: Callable[[Meter], Sequence[Proposer]]
) -> AsyncGenerator[Event, None]:
    request = run.request
    if not kernels:
        which = f"no kernel {request.kernel}" if request.kernel else "no kernel that is launched"
        raise CostUnavailableError("no-kernel", f"{request.path} has {which}.", lasting=True)
    baseline = await run.cost.baseline()
    measurements = {m.name: m for m in baseline.kernels}
    for kernel in sorted(kernels, key=lambda k: -_us(measurements.get(k.name))):
        measurement = measurements.get(kernel.name)
        if measurement is None or baseline.refusal(kernel.name) is not None:
            yield KernelSkipped(_why_skipped(baseline, kernel.name), kernel.name)
            continue
        await run.recorder.event(
            BASELINE, {"kernel": kernel.name, "latency": measurement.latency, "measurement": measurement}
        )
        yield BaselineMeasured(kernel.name, measurement)
        others = tuple(m for m in baseline.kernels if m.name != kernel.name and m.latency.us is not None)
        root, sources = Node(request.text, kernel, measurement, others=others), list(proposers(run.meter))
        strategy_options = dict(request.plan.options)
        if request.plan.strategy in LEARNING:
            strategy_options.setdefault("prior", await run.recorder.prior(kernel.dialect))
        strategy = RepeatedVersion(root, request.repetition) if request.repetition else strategy_named(
            request.plan.strategy, root, [p.name for p in sources],
            target=request.target, depth=request.plan.composed, seed=request.plan.seed, **strategy_options,
        )  # fmt: skip
        search = KernelSearch(run, root, strategy, sources).run()
        async with aclosing(search):
            async for event in search:
                yield event


def _launched(request: OptimizeRequest) -> list[Kernel]:
    source = find_kernels(request.text)
    if request.kernel is None:
        return source.launched
    return [k for k in source.kernels if k.name == request.kernel]


def _us(measurement: KernelMeasurement | None) -> float:
    return 0.0 if measurement is None or measurement.latency.us is None else measurement.latency.us


def _why_skipped(baseline: FileMeasurement, kernel: str) -> str:
    """Return why a kernel without a cost is not searched, as one line."""
    reason = baseline.refusal(kernel) or NO_TIME
    if reason is NO_TIME:
        return "Its time is not known, so nothing can be called faster."
    wrong = "Only a right kernel is made faster: " if reason.code in OWN_FAULTS else ""
    return f"{wrong}{reason.message.rstrip('.')} (line {reason.line})"
