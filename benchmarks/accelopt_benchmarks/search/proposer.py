"""Simulates a proposer: it draws from the rule catalogue, and breaks a stated share of its edits, which marks at the
end of a text name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import ModelCall
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_agent.simulated.team import Skill

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
        choices = self._rewrites(plain(node.text))
        if choices and self._random.random() < self._skill.knows:
            plan = self._random.choice(choices)
            text, summary = marked_as(plan.text, node.text), plan.summary
        else:
            text, summary = same(node.text, self._next()), "Tidy up."
        return [self._written(node, text, summary) for _ in range(self._samples)]

    def _written(self, node: Node, text: str, summary: str) -> Candidate:
        self._book("coder", self._tokens.coder)
        if self._random.random() < self._skill.breaks:
            fault: Fault = "crash" if self._random.random() < self._skill.crashes else "wrong"
            text = broken(text, fault, self._next())
        return self._candidate(node, text, summary)

    def _repair(self, node: Node) -> Candidate:
        self._book("debugger", self._tokens.debugger)
        if fault_of(node.text) is None:
            raise ProposerError("The simulated proposer repairs only what it broke itself.")
        if self._random.random() < self._skill.repairs:
            return self._candidate(node, repaired(node.text), "Repair.")
        fault: Fault = "crash" if self._random.random() < self._skill.crashes else "wrong"
        return self._candidate(node, broken(node.text, fault, self._next()), "Repair.")

    def _candidate(self, node: Node, text: str, summary: str) -> Candidate:
        # Each edit is one of its own, so the step's name holds its number.
        return Candidate(node.kernel.name, text, "model:simulated", f"{summary} ({self._next()})")

    def _book(self, role: str, tokens: tuple[int, int]) -> None:
        self._meter.book(ModelCall(role, "simulated", *tokens, 0.0, None))

    def _next(self) -> int:
        self._count += 1
        return self._count


#: How an edit is broken: the kernel does not run, or it runs and its result is wrong.
Fault = Literal["crash", "wrong"]

_BROKEN, _SAME = "_BROKEN", "_SAME"


def broken(text: str, fault: Fault, number: int) -> str:
    return f'{text.rstrip()}\n{_BROKEN}_{number} = "{fault}"\n'


def same(text: str, number: int) -> str:
    """Return another text whose kernel costs what it cost before."""
    return f"{text.rstrip()}\n{_SAME}_{number} = 0\n"


def fault_of(text: str) -> Fault | None:
    found = [line for line in _marks(text) if line.startswith(_BROKEN)]
    if not found:
        return None
    return "crash" if any("crash" in line for line in found) else "wrong"


def repaired(text: str) -> str:
    """Return the text without the marks of broken edits."""
    kept = [line for line in text.rstrip().split("\n") if not line.startswith(_BROKEN)]
    return "\n".join(kept) + "\n"


def plain(text: str) -> str:
    """Return the text without any marks: what rules are applied to and costs are known of."""
    kept = [line for line in text.rstrip().split("\n") if not line.startswith((_BROKEN, _SAME))]
    return "\n".join(kept).rstrip() + "\n"


def marked_as(text: str, like: str) -> str:
    """Return ``text``, which has no marks, with those of ``like``."""
    return "\n".join([text.rstrip(), *_marks(like)]) + "\n"


def marks_of(text: str) -> str:
    """Return all marks of the text, in their order; empty where it has none."""
    return " ".join(_marks(text))


def _marks(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith((_BROKEN, _SAME))]
