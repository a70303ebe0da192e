"""Proposes rewrites by a model team: the planner names lines, the coder rewrites them, the debugger repairs faults."""

from __future__ import annotations

import asyncio
import time

from accelopt_agent.candidate import Candidate
from accelopt_agent.experience.source import ExperienceSource
from accelopt_agent.model.anchors import Anchor, apply_plan_answer, parse_anchors
from accelopt_agent.model.client import ModelCallError, ModelQuery, query_model
from accelopt_agent.model.edit_scope import outside_changes
from accelopt_agent.model.edits import InvalidAnswerError, apply_edits, read_edits
from accelopt_agent.model.ledger import ledger_entry
from accelopt_agent.model.role_prompts import (
    coder_user,
    debugger_answer_user,
    debugger_user,
    planner_user,
    system_prompt,
    visible_lines,
)
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.model.team import ModelTeam, Role, same_for_all
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_agent.search.transcript import Transcript
from accelopt_agent.syntax.fingerprint import file_fingerprint

#: How much of a plan becomes the candidate's summary.
SUMMARY_CHARACTERS = 160


class ModelProposer:
    """Queries the team about one version at a time and books every call in the run's meter. ``wishes`` is the person's
    instruction, ``asked`` the function that sends a query to a model, ``experience`` what the team is told of the
    memory."""

    name = "model"

    def __init__(
        self,
        settings: ModelSettings | ModelTeam,
        meter: Meter,
        target: str,
        *,
        backoff_seconds: float = 1.0,
        wishes: str = "",
        asked: ModelQuery = query_model,
        experience: ExperienceSource | None = None,
    ) -> None:
        self._team = settings if isinstance(settings, ModelTeam) else same_for_all(settings)
        self._meter, self._target, self._backoff, self._wishes = meter, target, backoff_seconds, wishes
        self._asked = asked
        self._experience = experience or ExperienceSource(None, target)

    async def propose(self, node: Node) -> list[Candidate]:
        """Return the rewrites of one plan, or the repair of a version that failed.

        Raises:
            ProposerError: there is none, with the reason; the run goes on.
        """
        return await self.propose_with(node, Transcript())

    async def propose_with(self, node: Node, transcript: Transcript) -> list[Candidate]:
        """``propose``, without asking for what was ``transcript`` already."""
        try:
            if node.failure is not None:
                return [await self._repair(node, transcript)]
            return await self._carry_out_plan(node, transcript)
        except ModelCallError as fault:
            raise ProposerError(str(fault), final=fault.final) from fault
        except InvalidAnswerError as bad:
            raise ProposerError(f"The answer of {self._team.coder.model} is left out: {bad}.") from bad

    async def _carry_out_plan(self, node: Node, transcript: Transcript) -> list[Candidate]:
        known = await self._experience.of(node)
        told = self._experience.planner_text(known)
        plan = await self._ask(
            "planner", node, planner_user(node, self._team.planner, self._wishes, told), transcript
        )
        anchors = parse_anchors(plan, node.text)
        share = self._team.coder.share
        _check_visible(node, anchors, self._team.planner)
        found: list[Candidate] = []
        bad: InvalidAnswerError | None = None
        example = await asyncio.to_thread(self._experience.coder_text, known, node, plan)
        for _ in range(self._team.samples):
            user = coder_user(node, plan, anchors, share, example)
            answer = await self._ask("coder", node, user, transcript)
            try:
                text = await self._apply_or_repair(node, plan, anchors, answer, transcript)
            except InvalidAnswerError as error:
                bad = error
                continue
            found.append(self._candidate(node, text, plan))
        if not found and bad is not None:
            raise bad
        return found

    async def _apply_or_repair(
        self, node: Node, plan: str, anchors: tuple[Anchor, ...], answer: str, transcript: Transcript
    ) -> str:
        """Apply ``answer`` to the file; where it is invalid, let the debugger correct it."""
        for left in range(self._team.repairs, -1, -1):
            try:
                return checked(node, apply_answer(node, anchors, answer))
            except InvalidAnswerError as bad:
                if not left:
                    raise
                error = str(bad)
            user = debugger_answer_user(node, plan, anchors, answer, error, self._team.debugger.share)
            answer = await self._ask("debugger", node, user, transcript)
        raise AssertionError("unreachable")

    async def _repair(self, node: Node, transcript: Transcript) -> Candidate:
        answer = await self._ask("debugger", node, debugger_user(node, self._team.debugger), transcript)
        text = checked(node, apply_edits(node.text, read_edits(answer)))
        error = node.failure.message if node.failure else ""
        return self._candidate(node, text, f"Repair: {error}")

    async def _ask(self, role: Role, node: Node, user: str, transcript: Transcript) -> str:
        if (before := transcript.replay(role, node)) is not None:
            return before
        settings = self._team.of(role)
        if spent := self._meter.model_spent():
            raise ModelCallError(f"The model is not asked any more: {spent}.", final=True)
        system = system_prompt(role, node, self._target)
        started = time.monotonic()
        try:
            answer = await self._asked(settings, system, user, backoff_seconds=self._backoff)
        except ModelCallError as fault:
            self._meter.book(ledger_entry(role, settings, fault, time.monotonic() - started))
            raise
        self._meter.book(ledger_entry(role, settings, answer, time.monotonic() - started))
        await transcript.add(role, node, answer.text)
        return answer.text

    def _candidate(self, node: Node, text: str, plan: str) -> Candidate:
        return Candidate(node.kernel.name, text, f"model:{self._team.coder.model}", _summary(plan))


def _check_visible(node: Node, anchors: tuple[Anchor, ...], settings: ModelSettings) -> None:
    """Raise InvalidAnswerError where a plan names lines that the planner was not shown: nobody may be shown them."""
    first, last = visible_lines(node, settings.share)
    for anchor in anchors:
        if anchor.first < first or anchor.last > last:
            raise InvalidAnswerError(
                f"the plan names lines {anchor.first}-{anchor.last}, which it was not shown"
            )


def apply_answer(node: Node, anchors: tuple[Anchor, ...], answer: str) -> str:
    """Apply ``answer`` to the file. A change outside the kernel is reported before one outside the anchors: it is
    worse.

    Raises:
        InvalidAnswerError: as ``anchors.apply_plan_answer``, or code outside the kernel and its launch changed.
    """
    try:
        return apply_plan_answer(node.text, anchors, answer)
    except InvalidAnswerError:
        try:
            whole = apply_edits(node.text, read_edits(answer))
        except InvalidAnswerError:
            whole = node.text
        if whole != node.text:
            checked(node, whole)
        raise


def checked(node: Node, text: str) -> str:
    """Return ``text`` if it may be a version of the kernel.

    Raises:
        InvalidAnswerError: it does not parse, changes more than the kernel and its launch, or changes nothing.
    """
    try:
        outside = outside_changes(node.text, text, node.kernel.name)
        same = file_fingerprint(text) == file_fingerprint(node.text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InvalidAnswerError(f"its edits leave a file that does not parse ({error})") from error
    if outside is not None:
        raise InvalidAnswerError(outside)
    if same:
        raise InvalidAnswerError("the plan is not carried out: the code does what it did")
    return text


def _summary(plan: str) -> str:
    """Return the beginning of the plan as one line, without the line numbers it starts with."""
    words = " ".join(plan.split())
    if words[:5].upper().startswith("LINE"):
        head, _, rest = words.partition(": ") if ": " in words[:60] else words.partition(" ")
        words = rest.lstrip("0123456789-, ") or words
        del head
    return words if len(words) <= SUMMARY_CHARACTERS else words[: SUMMARY_CHARACTERS - 3].rstrip() + "..."
