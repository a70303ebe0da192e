"""The search loop for one kernel: the strategy chooses steps, the scheduler runs them, their results are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.events import (
    CandidateJudged,
    CandidateTried,
    Event,
    ProgressText,
    SuggestionFound,
)
from accelopt_agent.search.budget import BudgetExhaustedError
from accelopt_agent.search.control import LAST_CHECK
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.search.paid import PaidCost
from accelopt_agent.search.proposer import Proposer, ProposerError
from accelopt_agent.search.recorder import (
    CANDIDATE_JUDGED,
    CANDIDATE_TRIED,
    CONTINUED,
    PAUSED,
)
from accelopt_agent.search.scheduler import CandidateValidator, Concurrency, StepScheduler, ValidationResult
from accelopt_agent.search.search_run import SearchRun
from accelopt_agent.search.strategies.strategy import (
    AskProposer,
    CandidateMeasured,
    Capacity,
    NodeValidated,
    ProposalsReceived,
    SearchStep,
    Strategy,
    TryCandidate,
    ValidateNode,
)
from accelopt_agent.search.trial import KnownRewrites, Proposal, Trial, VersionTexts, repeats
from accelopt_agent.search.trial_result import (
    LessonWriter,
    candidate_outcome,
    failure_of,
    lessons_due,
    node_of_trial,
    outcome_of,
    suggestion_for,
)
from accelopt_agent.search.versions import MeasuredVersions
from accelopt_agent.suggestions.accept import pair_of
from accelopt_agent.suggestions.lesson import lesson_line
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_memory.records import Pair, Rejection, Trap
from accelopt_profiling.duration import duration_text
from accelopt_profiling.measurement import LIMITS, KernelMeasurement
from accelopt_profiling.waiting import interruptible


class KernelSearch:
    """Searches faster versions of the kernel at ``root``."""

    def __init__(
        self,
        run: SearchRun,
        root: Node,
        strategy: Strategy,
        proposers: Sequence[Proposer],
        texts: VersionTexts | None = None,
    ) -> None:
        self.shared, self.request, self.root, self.strategy = run, run.request, root, strategy
        self._proposers = {p.name: p for p in proposers}
        self._cost, self._recorder, self._meter = run.cost, run.recorder, run.meter
        self._paid, self._control = run.meter.paid, run.control
        self._validator = CandidateValidator(run.gate, run.recorder, run.meter)
        self._texts = texts or VersionTexts(root.text, root.kernel.name)
        self._known = KnownRewrites(root, self._texts)
        self._taught: list[Pair] = []
        self._traps: set[str] = set()  # rewrites that earlier searches tried in vain
        self._gone: set[str] = set()  # proposers that answer nothing any more
        self._told_faults: set[str] = set()
        self._offered: dict[str, Suggestion] = {}
        self._scheduler = StepScheduler(
            Concurrency(run.request.plan.calls, max(1, run.request.plan.parallel))
        )

    async def run(self) -> AsyncGenerator[Event, None]:
        """Yield events until the strategy has nothing more to do, the budget is spent or the goal is reached.

        Proposals, measurements and validations run concurrently; their results are processed one after another. While
        the search is paused, no step is started, and once none runs, no time is counted.

        Raises:
            BudgetExhaustedError: the message names the limit.
            EvaluatorLostError: the host is gone.
        """
        await self._load_refusals()
        try:
            while True:
                if self._meter.seconds_left == 0.0:
                    async for event in self._check_best():
                        yield event
                    raise BudgetExhaustedError(self._meter.spent() or "the time is used up")
                if not self._control.on:
                    self._begin()
                if not len(self._scheduler):
                    if not self._control.on:
                        break
                    async for event in self._rest():
                        yield event
                    continue
                awaited = self._control.over() if self._control.on else self._meter.news_came()
                ended = await self._scheduler.finished(self._meter.seconds_left, awaited)
                for event in self._news():
                    yield event
                for step, task in ended:
                    for event in await self._take(step, task):
                        yield event
                if trouble := self._recorder.new_trouble():
                    yield ProgressText(trouble)
            await self._write_lessons()
            for event in self._news():
                yield event
            if reached := self._goal_reached():
                yield ProgressText(reached)
            elif spent := self._meter.spent():
                raise BudgetExhaustedError(spent)
        finally:
            await self._scheduler.cancel_all()

    def _news(self) -> list[Event]:
        """Return what the meter was told since the last call."""
        kernel, tokens = self.root.kernel.name, self._meter.tokens_in + self._meter.tokens_out
        return [ProgressText(f"{kernel}: {line}", tokens=tokens) for line in self._meter.take_news()]

    async def _check_best(self) -> AsyncGenerator[Event, None]:
        """When the time is up: let the check that runs end, or check the best version without one. That is the only
        work past the limit, and ``control.until_stopped`` ends it after ``LAST_CHECK`` seconds."""
        await self._scheduler.cancel_all(but=ValidateNode)
        if not len(self._scheduler) and (node := self.strategy.unchecked()) is not None:
            self._start(ValidateNode(node))
        if len(self._scheduler):
            yield ProgressText(
                f"{self.root.kernel.name}: the time is up; the last check has {LAST_CHECK:g} s to end"
            )
        while len(self._scheduler):
            for step, task in await self._scheduler.finished(None):
                for event in await self._take(step, task):
                    yield event

    async def _rest(self) -> AsyncGenerator[Event, None]:
        await self._recorder.event(PAUSED, {})
        yield ProgressText(f"{self.root.kernel.name}: paused")
        with self._meter.resting():
            await self._control.over()
        await self._recorder.event(CONTINUED, {})
        yield ProgressText(f"{self.root.kernel.name}: going on")

    def _begin(self) -> None:
        """Start all steps that there is capacity for.

        When only the budget of candidates is spent, or no more time is left than the check of the best version may
        need, measured ones are still validated.
        """
        while True:
            free = self._scheduler.free
            rest = self._meter.candidates_left - self._scheduler.count(TryCandidate)
            check_only = self._meter.keeps_rest_for_check and self.strategy.unchecked() is not None
            if rest <= 0 or check_only or self._goal_reached():
                free = Capacity(False, False, free.validations)
            running = self._scheduler.count(TryCandidate)
            step = self.strategy.choose(replace(free, candidates=self._meter.tries_left - running))
            if step is None:
                return
            self._start(step)

    def _start(self, step: SearchStep) -> None:
        if isinstance(step, AskProposer):
            self._scheduler.start(step, lambda: self._propose(step))
        elif isinstance(step, TryCandidate):
            self._scheduler.start(step, lambda: self._cost_of(step.trial))
        else:
            self._scheduler.start(step, lambda: self._verdict_on(step.node))

    async def _take(self, step: SearchStep, task: asyncio.Task[Any]) -> list[Event]:
        """Process the result of a step: first into the memory and the strategy, then as events."""
        if isinstance(step, AskProposer):
            return await self._take_proposals(step, task)
        return await (
            self._take_measurement(step, task)
            if isinstance(step, TryCandidate)
            else self._take_validation(step, task)
        )

    def _goal_reached(self) -> str | None:
        """Return the reason why the search may stop early, as one line. None if it may not."""
        goal, best = self.request.budget.percent_of_peak, self.strategy.best()
        percent = best.measurement.percent_of_peak
        if goal is None or percent is None or percent < goal:
            return None
        return f"{best.kernel.name} runs at {percent:.0f} % of peak, which is enough (goal {goal:g} %)."

    async def _load_refusals(self) -> None:
        if self.request.repetition is not None:
            return  # what did not help by itself may be a step of what does
        kernel_hash, target = self.root.kernel.content_hash, self.request.target
        no_traps: list[Trap] = []
        no_rejections: list[Rejection] = []
        traps = await self._recorder.read(lambda m: m.traps(kernel_hash), no_traps)
        rejected = await self._recorder.read(lambda m: m.rejected(kernel_hash), no_rejections)
        self._known.never_again.update(r.candidate_id for r in rejected)
        self._traps = {t.candidate_id for t in traps if t.target == target}
        if not self.request.resume:
            self._known.never_again |= self._traps

    # Calls

    async def _propose(self, step: AskProposer) -> tuple[int, list[Proposal]]:
        """Return how many rewrites an answer has, and those that may be tried. Raises ProposerError."""
        candidates = await self._proposers[step.proposer].propose(step.node)
        proposals = await interruptible(self._known.read, candidates, step.node)
        if self.request.resume:  # what was tried in vain is taken over, and not tried again
            vain = self._traps
            proposals = [
                p for p in proposals if p.trial.fingerprint not in vain or await self._is_paid(p.trial)
            ]
        return len(candidates), proposals

    async def _take_proposals(
        self, step: AskProposer, task: asyncio.Task[tuple[int, list[Proposal]]]
    ) -> list[Event]:
        """Pass on to the strategy what is new of an answer.

        The same fault is told once, however often it is met.
        """
        name, kernel = step.proposer, step.node.kernel.name
        was_asked, lines = self.strategy.usable(name), list[str]()
        try:
            count, proposals = task.result()
        except ProposerError as error:
            await self._recorder.event("proposer failed", {"proposer": name, "why": str(error)})
            if error.final:
                self._gone.add(name)
            if str(error) not in self._told_faults:
                self._told_faults.add(str(error))
                lines.append(str(error))
            self.strategy.observe(ProposalsReceived(step, (), silent=error.final, answered=False))
        else:
            trials = self._known.new_trials(proposals)
            self._meter.skipped += count - len(trials)
            self.strategy.observe(ProposalsReceived(step, trials))
            if trials:
                whose = name if name == "rules" else f"the {name}"
                lines.append(f"{kernel}: {len(trials)} rewrite{'' if len(trials) == 1 else 's'} from {whose}")
        if was_asked and name not in self._gone and not self.strategy.usable(name):
            lines.append(f"{kernel}: the {name} is asked no more: too many answers in a row were of no use")
        return [ProgressText(line) for line in lines]

    # Costs

    async def _cost_of(self, trial: Trial) -> tuple[KernelMeasurement | CostUnavailableError, bool]:
        """Return the trial's measurement or why there is none, and whether an earlier run had paid for it."""

        async def measured() -> PaidCost:
            try:
                return PaidCost(await self._cost.cost(trial.candidate.text, self.root.kernel.name))
            except CostUnavailableError as error:
                return PaidCost(None, error.code, str(error), error.lasting)

        paid, before = await self._paid(
            "cost", PaidCost, *self._paid_key(trial), measured, lambda cost: cost.lasts
        )
        return paid.result, before

    def _paid_key(self, trial: Trial) -> tuple[tuple[str, str], list[Any]]:
        kernel = self.root.kernel.name
        return (trial.candidate.text, kernel), [self._cost.way(kernel)]

    async def _is_paid(self, trial: Trial) -> bool:
        return await self._paid.knows("cost", *self._paid_key(trial))

    async def _take_measurement(
        self, step: TryCandidate, task: asyncio.Task[tuple[KernelMeasurement | CostUnavailableError, bool]]
    ) -> list[Event]:
        trial, (measured, paid_before) = step.trial, task.result()
        self._meter.remembered += paid_before
        self._meter.candidates += not paid_before
        node = node_of_trial(trial, measured, root=self.root, texts=self._texts, target=self.request.target)
        if (
            self._known.fails(trial.step, trial.parent) and node.failure is None
        ):  # refused while this one was tried
            node.verdict, node.failure = "refused", Failure("refused", "The same step was refused elsewhere.")
        outcome = candidate_outcome(node, self.request.target)
        detail = str(measured) if isinstance(measured, CostUnavailableError) else trial.moves(measured)
        if isinstance(measured, CostUnavailableError) and measured.lasting:
            if repeats(trial.step):
                self._known.add_failed_step(trial.step, trial.parent)
            await self._trap(trial, measured.code, detail)
        elif outcome == "slower" and not node.compared_at_scale:  # that says little of other sizes
            await self._trap(
                trial, "slower", f"{duration_text(node.us)} instead of {duration_text(self.root.us)}"
            )
        composed = trial.composed
        number = self._meter.candidates + self._meter.remembered
        data = {
            "origin": composed.origin, "steps": composed.steps, "summary": trial.candidate.summary,
            "path": composed.summary,
            "outcome": outcome, "latency": node.measurement.latency, "detail": detail, "number": number,
        }  # fmt: skip
        if isinstance(measured, KernelMeasurement):
            data["measurement"] = measured
        await self._recorder.event(CANDIDATE_TRIED, data, key=trial.fingerprint)
        await self._recorder.outcome(outcome_of(trial, node, self.root, self.request.target))
        trial.parent.children.append(node)
        self.strategy.observe(CandidateMeasured(trial, node))
        return [
            CandidateTried(number, composed, outcome=outcome, latency=node.measurement.latency, detail=detail)
        ]

    async def _trap(self, trial: Trial, code: str, why: str) -> None:
        await self._recorder.trap(
            self.root, trial.fingerprint, self.request.target, trial.candidate, code, why
        )

    # Checks

    async def _verdict_on(self, node: Node) -> ValidationResult:
        with self._meter.checking():
            return await self._validator.validate(node)

    async def _take_validation(self, step: ValidateNode, task: asyncio.Task[ValidationResult]) -> list[Event]:
        node = step.node
        candidate = node.candidate
        assert candidate is not None
        try:
            validation = task.result()
        except CostUnavailableError as error:
            node.verdict = "refused"
            self.strategy.observe(NodeValidated(node))
            await self._recorder.event("gate failed", {"candidate": candidate.id, "why": str(error)})
            return [ProgressText(f"The gate gave no verdict on a candidate, which is left out: {error}")]
        verdict, untimed = validation.verdict, validation.untimed
        node.verdict = "accepted" if verdict.accepted else "refused"
        node.comparison = validation.comparison
        data = {"steps": candidate.steps, "summary": candidate.summary, "verdict": verdict}
        await self._recorder.event(CANDIDATE_JUDGED, data)
        events: list[Event] = [CandidateJudged(candidate, verdict)]
        if not verdict.accepted:
            await self._refuse(node, candidate, failure_of(verdict))
        else:
            for child in node.children:
                if child.verdict == "refused" and child.failure is not None and child.failure.near:
                    self._refuse_repeated(child, child.failure)
        if verdict.accepted and untimed is not None and untimed.lasting:
            await self._refuse(node, candidate, Failure(untimed.code, str(untimed)))
        if why := validation.not_offered:
            node.clearly_faster = False
            data = {"candidate": candidate.id, "comparison": validation.comparison, "why": why}
            await self._recorder.event("side by side", data)
            events.append(ProgressText(why))
        self.strategy.observe(NodeValidated(node))
        if node.verdict == "accepted" and node.clearly_faster:
            suggestion = await interruptible(
                suggestion_for, self.request, node, verdict, self.shared.id, self.shared.host
            )
            suggestion = await self.shared.lay_out(suggestion)
            self._offered[node.fingerprint] = suggestion
            await self._recorder.suggestion(suggestion)
            await self._teach(suggestion)
            await self._recorder.event("suggestion", {"id": suggestion.id, "speedup": suggestion.speedup})
            events.append(SuggestionFound(suggestion))
        return events

    async def _teach(self, suggestion: Suggestion) -> None:
        """Let the memory know what was checked, for the rest of this search and for the next kernels. What it goes on
        from teaches no more by itself."""
        try:
            pair = await interruptible(pair_of, suggestion)
        except (ValueError, RecursionError):  # the kernel is gone from the text, or it is nested too deep
            return
        begun = [earlier for earlier in self._taught if pair.steps[: len(earlier.steps)] == earlier.steps]
        self._taught = [earlier for earlier in self._taught if earlier not in begun] + [pair]
        await self._recorder.checked_pair(pair, [earlier.id for earlier in begun])

    async def _write_lessons(self) -> None:
        """Have the summarizer say why the best checked versions are faster, and the worst ones slower, and keep that
        with pair and trap. Without a memory nobody would read it; without time nobody is asked."""
        proposers = [p for name, p in self._proposers.items() if name not in self._gone]
        writer = next((p for p in proposers if isinstance(p, LessonWriter)), None)
        if writer is None or not self._recorder.keeps:
            return
        for slow, fast, version in lessons_due(self.root, self.request.plan.lessons):
            if self._meter.seconds_left == 0.0:
                return
            try:
                text = await asyncio.wait_for(writer.lesson(slow, fast), self._meter.seconds_left)
            except (ProposerError, asyncio.TimeoutError):
                return
            if version is fast and (suggestion := self._offered.get(version.fingerprint)) is not None:
                await self._recorder.lesson(suggestion, text)
            elif version is slow:
                moved = MeasuredVersions(slow.measurement, fast.measurement).moved()
                if line := lesson_line(text, slow.text, fast.text, [name for name, _, _ in moved]):
                    await self._recorder.trap_lesson(
                        self.root, version.fingerprint, self.request.target, line
                    )

    async def _refuse(self, node: Node, candidate: Candidate, failure: Failure) -> None:
        """Mark the version as wrong, and the one step that made it from a right one: neither is tried again. A limit
        that the check met says nothing about the next one, on a machine that is less busy."""
        node.verdict, node.failure = "refused", failure
        if failure.code in LIMITS:
            return
        await self._trap(Trial(candidate, node, node.fingerprint), failure.code, failure.message)
        await self._recorder.refusal(self.root.kernel.content_hash, self.request.target, node.fingerprint)
        self._refuse_repeated(node, failure)

    def _refuse_repeated(self, node: Node, failure: Failure) -> None:
        """Refuse the step that made a right version wrong, where it does the same wherever it is taken: it is not taken
        again, and versions made with it are not validated."""
        before = node.parent
        if before is None or node.step is None or not repeats(node.step):
            return
        if before is self.root or before.verdict == "accepted":
            self._known.add_failed_step(node.step, before)
            for other in self.root.walk():
                if (
                    other.verdict is None
                    and other.step is not None
                    and self._known.fails(other.step, other.parent)
                ):
                    other.verdict, other.failure = "refused", failure
