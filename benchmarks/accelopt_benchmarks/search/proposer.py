"""Simulates a proposer: it draws from the rule catalogue, and breaks a stated share of its edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import ModelCall
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_benchmarks.search import marks
from accelopt_benchmarks.simulated.team import Skill

#: The rewrites of a text that the proposer may know.
Rewrites = Callable[[str], Sequence[Candidate]]


@dataclass(frozen=True)
class CallTokens:
    """Tokens in and out of one simulated call per role."""

    planner: tuple[int, int] = (0, 0)
    coder: tuple[int, int] = (0, 0)
    debugger: tuple[int, int] = (0, 0)


class SimulatedProposer:
    """Answers with ``samples`` tries at one plan, as AccelOpt's executor does, or with one repair. Every call is
    booked with its simulated tokens."""

    name = "model"

    def __init__(
        self,
        rewrites: Rewrites,
        random: Random,
        meter: Meter,
        *,
        skill: Skill | None = None,
        samples: int = 1,
        tokens: CallTokens | None = None,
    ) -> None:
        self._rewrites, self._random, self._meter = rewrites, random, meter
        self._skill, self._samples, self._tokens = skill or Skill(), samples, tokens or CallTokens()
        self._count = 0

    async def propose(self, node: Node) -> list[Candidate]:
        if node.failure is not None:
            return [self._repair(node)]
        self._book("planner", self._tokens.planner)
        choices = self._rewrites(marks.plain(node.text))
        if choices and self._random.random() < self._skill.knows:
            plan = self._random.choice(choices)
            text, summary = marks.marked_as(plan.text, node.text), plan.summary
        else:
            text, summary = marks.same(node.text, self._next()), "Tidy up."
        return [self._written(node, text, summary) for _ in range(self._samples)]

    def _written(self, node: Node, text: str, summary: str) -> Candidate:
        self._book("coder", self._tokens.coder)
        if self._random.random() < self._skill.breaks:
            fault: marks.Fault = "crash" if self._random.random() < self._skill.crashes else "wrong"
            text = marks.broken(text, fault, self._next())
        return self._candidate(node, text, summary)

    def _repair(self, node: Node) -> Candidate:
        self._book("debugger", self._tokens.debugger)
        if marks.fault_of(node.text) is None:
            raise ProposerError("The simulated proposer repairs only what it broke itself.")
        if self._random.random() < self._skill.repairs:
            return self._candidate(node, marks.repaired(node.text), "Repair.")
        fault: marks.Fault = "crash" if self._random.random() < self._skill.crashes else "wrong"
        return self._candidate(node, marks.broken(node.text, fault, self._next()), "Repair.")

    def _candidate(self, node: Node, text: str, summary: str) -> Candidate:
        # Each edit is one of its own, so the step's name holds its number.
        return Candidate(node.kernel.name, text, "model:simulated", f"{summary} ({self._next()})")

    def _book(self, role: str, tokens: tuple[int, int]) -> None:
        self._meter.book(ModelCall(role, "simulated", *tokens, 0.0, None))

    def _next(self) -> int:
        self._count += 1
        return self._count
