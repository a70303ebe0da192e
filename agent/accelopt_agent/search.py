"""The search for one kernel: the strategy chooses, proposers propose, the cost model sorts, the gate decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from accelopt_agent.budget import BudgetSpent, Meter
from accelopt_agent.candidate import Candidate
from accelopt_agent.comparing import clearly_faster, speedup
from accelopt_agent.costing import costs
from accelopt_agent.events import (
    CandidateJudged,
    CandidateTried,
    Event,
    Outcome,
    ProgressText,
    SuggestionFound,
)
from accelopt_agent.fingerprint import file_fingerprint, rewrite_fingerprint
from accelopt_agent.node import Node
from accelopt_agent.proposer import Proposer, ProposerFailed
from accelopt_agent.recorder import Recorder
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.resume import JUDGED, JUDGED_KEY, TRIED, Remembered
from accelopt_agent.strategy import Expand, Strategy
from accelopt_agent.suggestion import Suggestion
from accelopt_agent.tools import CostModel, CostUnknown, Gate
from accelopt_agent.trial import Trial, unified_diff
from accelopt_memory.records import Rejection, Trap, content_id
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement, Latency

T = TypeVar("T")


class KernelSearch:
    """Searches faster versions of the kernel at ``root``. ``host`` is where costs and verdicts come from."""

    def __init__(
        self,
        request: OptimizeRequest,
        root: Node,
        strategy: Strategy,
        proposers: Sequence[Proposer],
        *,
        cost: CostModel,
        gate: Gate,
        recorder: Recorder,
        meter: Meter,
        run: str,
        host: str,
        remembered: Remembered | None = None,
    ) -> None:
        self.request, self.root, self.strategy, self.run_id, self.host = request, root, strategy, run, host
        self._proposers = {p.name: p for p in proposers}
        self._cost, self._gate, self._recorder, self._meter = cost, gate, recorder, meter
        self._remembered = remembered or Remembered()
        self._seen = {file_fingerprint(root.text)}
        self._not_again: set[str] = set()
        self._failed_steps: set[tuple[str, str]] = set()

    async def run(self) -> AsyncGenerator[Event, None]:
        """Work until the strategy has nothing more to do or the budget is spent.

        Raises:
            BudgetSpent: the message says of what.
            ToolLost: the host is gone.
        """
        await self._load_refusals()
        while (step := self.strategy.choose()) is not None:
            spent = self._meter.spent()
            if spent and (isinstance(step, Expand) or self._meter.seconds_left == 0.0):
                raise BudgetSpent(
                    spent
                )  # what is tried already is still judged when only the candidates are spent
            events = self._expand(step) if isinstance(step, Expand) else self._judge(step.node)
            async with aclosing(events):
                async for event in events:
                    yield event
            if trouble := self._recorder.new_trouble():
                yield ProgressText(trouble)

    async def _load_refusals(self) -> None:
        kernel_hash, target = self.root.kernel.content_hash, self.request.target
        no_traps: list[Trap] = []
        no_rejections: list[Rejection] = []
        traps = await self._recorder.ask(lambda m: m.traps(kernel_hash), no_traps)
        rejected = await self._recorder.ask(lambda m: m.rejected(kernel_hash), no_rejections)
        self._not_again = {t.candidate_id for t in traps if t.target == target} | {
            r.candidate_id for r in rejected
        }

    async def _expand(self, step: Expand) -> AsyncGenerator[Event, None]:
        node, proposer = step.node, self._proposers[step.proposer]
        node.asked.add(proposer.name)
        try:
            candidates = await self._in_time(proposer.propose(node))
        except ProposerFailed as error:
            await self._recorder.event("proposer failed", {"proposer": proposer.name, "why": str(error)})
            if error.final:
                self.strategy.give_up(proposer.name)
            yield ProgressText(str(error))
            return
        trials = await asyncio.to_thread(self._trials, candidates, node)
        self._meter.skipped += len(candidates) - len(trials)
        for trial in [t for t in trials if t.fingerprint in self._remembered.costs]:
            trials.remove(trial)
            yield await self._tried(trial, self._remembered.costs[trial.fingerprint], paid_before=True)
        trials = trials[: self._meter.candidates_left]
        if trials:
            yield ProgressText(
                f"{node.kernel.name}: trying {_count(len(trials), 'rewrite')} from {proposer.name}"
            )
        results = costs(self._cost, trials, self.root.kernel.name, self.request.parallel, self._meter)
        async with aclosing(results):
            async for trial, found in results:
                yield await self._tried(trial, found)

    def _trials(self, candidates: Sequence[Candidate], node: Node) -> list[Trial]:
        return [trial for c in candidates if (trial := self._trial(c, node)) is not None]

    def _trial(self, candidate: Candidate, node: Node) -> Trial | None:
        """The candidate to be tried, told as what became of the original; None when it is known already."""
        if (candidate.origin, candidate.summary) in self._failed_steps:
            return None
        try:
            fingerprint = file_fingerprint(candidate.text)
            rewrite = rewrite_fingerprint(self.root.text, candidate.text, self.root.kernel.name)
        except (SyntaxError, ValueError, RecursionError):
            return None
        if fingerprint in self._seen or rewrite in self._not_again:
            return None
        self._seen.add(fingerprint)
        return Trial(candidate, node, rewrite)

    async def _tried(
        self, trial: Trial, found: KernelMeasurement | CostUnknown, *, paid_before: bool = False
    ) -> CandidateTried:
        self._meter.remembered += paid_before
        self._meter.candidates += not paid_before
        candidate, detail, latency = trial.candidate, "", Latency()
        outcome: Outcome
        if isinstance(found, CostUnknown):
            outcome, detail = "failed", str(found)
            if found.lasting:
                self._failed_steps.add(trial.step)
                await self._trap(trial, found.code, detail)
        else:
            latency = found.latency
            node = await asyncio.to_thread(self._node, trial, found)
            outcome = self._outcome(node)
            detail = trial.moves(found)
            if outcome == "slower":
                await self._trap(trial, "slower", f"{latency.us:.4g} us instead of {self.root.us:.4g} us")
            self.strategy.observe(node)
        event = CandidateTried(
            self._meter.candidates + self._meter.remembered, trial.composed, outcome, latency, detail
        )
        data = {
            "origin": candidate.origin, "steps": event.candidate.steps, "summary": candidate.summary,
            "outcome": outcome, "latency": latency, "detail": detail, "number": event.number,
        }  # fmt: skip
        if not isinstance(found, CostUnknown):
            data["measurement"] = found
        await self._recorder.event(TRIED, data, key=trial.fingerprint)
        return event

    def _node(self, trial: Trial, found: KernelMeasurement) -> Node:
        candidate = trial.composed
        kernels = {k.name: k for k in find_kernels(candidate.text).kernels}
        node = Node(
            candidate.text,
            kernels[candidate.kernel],
            found,
            candidate,
            trial.parent,
            trial.step,
            trial.fingerprint,
        )
        node.clearly_faster = clearly_faster(
            self.root.measurement.latency, found.latency, self.request.target
        )
        return node

    def _outcome(self, node: Node) -> Outcome:
        if node.measurement.correctness.status == "failed":
            node.proof = "refused"
            return "failed"
        if node.clearly_faster:
            return "faster"
        there, back = self.root.measurement.latency, node.measurement.latency
        return "slower" if clearly_faster(back, there, self.request.target) else "unclear"

    async def _trap(self, trial: Trial, code: str, why: str) -> None:
        kernel = self.root.kernel
        self._not_again.add(trial.fingerprint)
        await self._recorder.trap(
            kernel.content_hash,
            trial.fingerprint,
            self.request.target,
            trial.candidate,
            kernel.dialect,
            code,
            why,
        )

    async def _judge(self, node: Node) -> AsyncGenerator[Event, None]:
        candidate = node.candidate
        assert candidate is not None
        verdict = self._remembered.verdicts.get(node.fingerprint)
        if verdict is None:
            yield ProgressText(f"{node.kernel.name}: proving that it is right: {candidate.summary}")
            try:
                verdict = await self._verdict(node)
            except CostUnknown as error:
                node.proof = "refused"
                await self._recorder.event("gate failed", {"candidate": candidate.id, "why": str(error)})
                yield ProgressText(f"The gate gave no verdict on a candidate, which is left out: {error}")
                return
        node.proof = "accepted" if verdict.accepted else "refused"
        data = {"steps": candidate.steps, "summary": candidate.summary, "verdict": verdict}
        await self._recorder.event(JUDGED, data, key=f"{JUDGED_KEY}{node.fingerprint}")
        if not verdict.accepted:
            code, why = next(((r.code, r.message) for r in verdict.reasons), ("refused", ""))
            await self._trap(Trial(candidate, node, node.fingerprint), code, why)
            if node.step and node.parent and (node.parent is self.root or node.parent.proof == "accepted"):
                self._failed_steps.add(node.step)
        self.strategy.observe(node)
        yield CandidateJudged(candidate, verdict)
        if verdict.accepted:
            suggestion = await asyncio.to_thread(self._suggestion, node, candidate, verdict)
            await self._recorder.suggestion(suggestion)
            await self._recorder.event("suggestion", {"id": suggestion.id, "speedup": suggestion.speedup})
            yield SuggestionFound(suggestion)

    async def _verdict(self, node: Node) -> Verdict:
        """What the gate says about ``node``; its evidence is in the memory before anything is told."""
        verdict, receipt = await self._in_time(self._gate.check(node.text, node.kernel.name))
        self._meter.judged += 1
        await self._recorder.receipt(receipt)
        return replace(verdict, receipt=verdict.receipt or receipt.id)

    def _suggestion(self, node: Node, candidate: Candidate, verdict: Verdict) -> Suggestion:
        base, target = self.root, self.request.target
        slow, fast = base.measurement.latency, node.measurement.latency
        ratio = speedup(slow, fast, target)
        assert ratio is not None  # clearly faster
        return Suggestion(
            id=content_id(
                "suggestion", str(self.request.path), base.kernel.content_hash, target, node.fingerprint
            )[:12],
            run=self.run_id,
            file=str(self.request.path),
            kernel=base.kernel.name,
            dialect=base.kernel.dialect,
            base_hash=base.kernel.content_hash,
            base_text=base.text,
            text=node.text,
            diff=unified_diff(base.text, node.text, str(self.request.path)),
            origin=candidate.origin,
            summary=candidate.summary,
            speedup=ratio,
            slow=slow,
            fast=fast,
            gate=verdict,
            target=target,
            host=self.host,
            steps=candidate.steps,
            bound=base.measurement.bound,
        )

    async def _in_time(self, work: Awaitable[T]) -> T:
        """The result of ``work``, which is cancelled when the run's time is up."""
        try:
            return await asyncio.wait_for(work, self._meter.seconds_left)
        except asyncio.TimeoutError:
            if spent := self._meter.spent():
                raise BudgetSpent(spent) from None
            raise


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
