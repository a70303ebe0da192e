"""Rewrites by a model: one planner call, one coder call, edits checked before anything runs."""

from __future__ import annotations

import time

from accelopt_agent.budget import Meter
from accelopt_agent.candidate import Candidate
from accelopt_agent.model.client import ModelFault, ask
from accelopt_agent.model.digest import digest, history
from accelopt_agent.model.edits import BadAnswer, apply_edits, read_edits
from accelopt_agent.model.ledger import entry
from accelopt_agent.model.prompt import fenced, render
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.model.shown import shown
from accelopt_agent.model.territory import outside_changes
from accelopt_agent.node import Node
from accelopt_agent.proposer import ProposerFailed

DIALECTS = {"triton": "Triton", "nki": "Neuron Kernel Interface (NKI)"}

#: How much of a plan becomes the candidate's summary.
SUMMARY_CHARACTERS = 160


class ModelProposer:
    """Asks the configured model for one rewrite at a time and books every call in the run's meter."""

    name = "model"

    def __init__(
        self, settings: ModelSettings, meter: Meter, target: str, *, backoff_seconds: float = 1.0
    ) -> None:
        self._settings, self._meter, self._target = settings, meter, target
        self._backoff = backoff_seconds
        self._told: list[Node] = []

    async def propose(self, node: Node) -> list[Candidate]:
        """One candidate, or none with the reason: the run goes on without it."""
        self._told.append(node)
        try:
            plan = await self._ask(
                "planner", node, digest=digest(node.measurement), tried=history(self._told)
            )
            return [self._candidate(node, plan, await self._ask("coder", node, plan=plan))]
        except ModelFault as fault:
            raise ProposerFailed(str(fault), final=fault.final) from fault
        except BadAnswer as bad:
            raise ProposerFailed(f"The answer of {self._settings.model} is left out: {bad}.") from bad

    async def _ask(self, role: str, node: Node, **parts: str) -> str:
        if spent := self._meter.model_spent():
            raise ModelFault(f"The model is not asked any more: {spent}.", final=True)
        system = render(f"{role}_system", dialect=DIALECTS[node.kernel.dialect], target=self._target)
        user = render(
            f"{role}_user",
            kernel=node.kernel.name,
            file=fenced(shown(node.text, node.kernel, self._settings.share)),
            **parts,
        )
        started = time.monotonic()
        try:
            answer = await ask(self._settings, system, user, backoff_seconds=self._backoff)
        except ModelFault as fault:
            self._meter.book(entry(role, self._settings, fault, time.monotonic() - started))
            raise
        self._meter.book(entry(role, self._settings, answer, time.monotonic() - started))
        return answer.text

    def _candidate(self, node: Node, plan: str, answer: str) -> Candidate:
        text = apply_edits(node.text, read_edits(answer))
        try:
            outside = outside_changes(node.text, text, node.kernel.name)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise BadAnswer(f"its edits leave a file that does not parse ({error})") from error
        if outside is not None:
            raise BadAnswer(outside)
        return Candidate(node.kernel.name, text, f"model:{self._settings.model}", _summary(plan))


def _summary(plan: str) -> str:
    """The beginning of the plan as one line."""
    line = " ".join(plan.split())
    return line if len(line) <= SUMMARY_CHARACTERS else line[: SUMMARY_CHARACTERS - 3].rstrip() + "..."
