"""Searches faster versions of a case's kernel with the agent; only accepted versions count."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from accelopt_agent import events
from accelopt_agent.model.team import ModelTeam
from accelopt_agent.optimize import optimize
from accelopt_agent.request import Budget, OptimizeRequest, SearchPlan
from accelopt_agent.search_record import SearchRecord
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.quantity import Known
from nkibench import measuring
from nkibench.case import BenchmarkCase
from nkibench.code import agent_hash
from nkibench.measuring import FULL_SIZE
from nkibench.peaks import peak_of_version
from nkibench.result import Best, TaskResult

#: Nobody waits for a benchmark's suggestions: the time model sorts all rewrites before the gate is asked.
_UNHURRIED = {"hybrid": {"check_last": True}}

#: How many rewrites are composed at most unless the plan says otherwise.
_DEPTH = 16


def unhurried(plan: SearchPlan) -> SearchPlan:
    """Return the plan for a search that nobody waits for."""
    options = {**_UNHURRIED.get(plan.strategy, {}), **plan.options}
    return replace(plan, depth=plan.depth or _DEPTH, options=options)


@dataclass(frozen=True)
class SearchVariant:
    """A search of all tasks by ``plan``, with a ``name`` where several are compared.

    ``alone`` puts one agent in the place of the team.
    """

    plan: SearchPlan = field(default_factory=SearchPlan)
    name: str = ""
    alone: bool = False

    @property
    def suffix(self) -> str:
        """What the variant's own files end with."""
        return f"-{self.name.replace(' ', '-')}" if self.name else ""

    def team_of(self, team: ModelTeam | None) -> ModelTeam | None:
        return replace(team, alone=True) if team is not None and self.alone else team


#: Starts a search on a host: ``accelopt_agent.optimize.optimize`` with a memory and a model, or without.
Start = Callable[[OptimizeRequest, Host], AsyncGenerator[events.Event, None]]


def with_rules_alone(request: OptimizeRequest, host: Host) -> AsyncGenerator[events.Event, None]:
    """Return a search without a memory and without a model. It cannot go on when it was ended."""
    return optimize(request, host, None)


@dataclass(frozen=True)
class Searching:
    """How to search, by ``plan``.

    ``start`` brings the memory, in which a run that was ended goes on, and the model; ``proposers`` names them in
    words, since an outcome depends on them.
    """

    budget: Budget
    start: Start = with_rules_alone
    proposers: str = "rules"
    parallel: int = 1
    plan: SearchPlan = field(default_factory=SearchPlan)

    @property
    def key(self) -> str:
        """What the outcome depends on besides the kernel: the budget, who proposes, and the agent's code."""
        setup = f"{self.budget} {self.proposers} {unhurried(self.plan)} {agent_hash()}"
        return f"search {hashlib.sha256(setup.encode()).hexdigest()[:8]}"

    async def search(
        self, host: Host, case: BenchmarkCase, result: TaskResult
    ) -> AsyncGenerator[tuple[str, Best | None], None]:
        """Yield what is done, one line each, and the outcome last.

        No outcome when the search could not begin.
        """
        request = OptimizeRequest(
            case.examined(),
            result.target,
            budget=self.budget,
            plan=replace(unhurried(self.plan), parallel=self.parallel),
            resume=True,
            checked=result.latency.known is Known.ESTIMATED,  # a device's times come last
            limits=FULL_SIZE,
        )
        record = SearchRecord()
        progress: list[tuple[int, float]] = []
        async with aclosing(self.start(request, host)) as happening:
            async for event in happening:
                record.add(event)
                if isinstance(event, events.CandidateTried):
                    us = event.latency.us if event.outcome == "faster" else None
                    if us and (not progress or us < progress[-1][1]):
                        progress.append((record.tried, us))
                    yield f"candidate {record.tried} of {self.budget.candidates}", None
                elif isinstance(event, events.CandidateJudged):
                    yield f"{record.judged} through the gate, {len(record.suggestions)} accepted", None
                elif isinstance(event, events.Finished):
                    best = await _verdict_on(host, case, _best(result, record, event), result)
                    yield event.reason, replace(best, progress=tuple(progress)) if record.baselines else None


async def _verdict_on(host: Host, case: BenchmarkCase, best: Best, result: TaskResult) -> Best:
    """Return the winner with its own least time, as profiled once more.

    Without one where it cannot be launched.
    """
    if not best.text:
        return best
    cost = await measuring.cost(host, case, result.target, best.text)
    if cost.measurement is None:
        return replace(best, latency=result.latency, steps=(), text="", reason=f"{best.reason}; {cost.why}")
    peak = peak_of_version(case, result.target, cost.measurement)
    return replace(best, peak_us=peak.us if peak else None)


def _best(result: TaskResult, record: SearchRecord, end: events.Finished) -> Best:
    fastest = min(record.suggestions, key=lambda s: s.fast.us or float("inf"), default=None)
    better = (
        fastest is not None
        and fastest.fast.us is not None
        and (result.latency.us is None or fastest.fast.us < result.latency.us)
    )
    chosen = fastest if better else None
    return Best(
        latency=chosen.fast if chosen else result.latency,
        steps=(chosen.steps or (chosen.origin,)) if chosen else (),
        tried=record.tried,
        judged=record.judged,
        accepted=len(record.suggestions),
        seconds=end.usage.seconds,
        reason=end.reason,
        text=chosen.text if chosen else "",
        tokens=end.usage.tokens_in + end.usage.tokens_out,
        money=end.usage.money,
        calls=end.usage.model_calls,
    )
