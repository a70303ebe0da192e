"""Rewrites by a model: the planner names lines, the coder fills them, the debugger repairs what a machine caught."""

from __future__ import annotations

import time

from accelopt_agent.candidate import Candidate
from accelopt_agent.model.anchors import Anchor, anchored, anchors_of, carried_out, numbered
from accelopt_agent.model.client import Ask, ModelFault, ask
from accelopt_agent.model.digest import digest
from accelopt_agent.model.edit_scope import outside_changes
from accelopt_agent.model.edits import BadAnswer, apply_edits, read_edits
from accelopt_agent.model.ledger import entry
from accelopt_agent.model.mistakes import near_mistakes, told
from accelopt_agent.model.prompt_templates import fenced, render
from accelopt_agent.model.role_context import coder_window, debugger_window, planner_window, shown_change
from accelopt_agent.model.settings import ModelSettings, Share
from accelopt_agent.model.shown import window
from accelopt_agent.model.team import Role, Team, same_for_all
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerFailed
from accelopt_agent.search.transcript import Said
from accelopt_agent.syntax.fingerprint import file_fingerprint
from accelopt_agent.syntax.lines import split_lines

#: How much of a plan becomes the candidate's summary.
SUMMARY_CHARACTERS = 160


class ModelProposer:
    """Asks the team about one version at a time and books every call in the run's meter. ``wishes`` is what the
    person asks for in a sentence, ``asked`` how a question gets to the model."""

    name = "model"

    def __init__(
        self,
        settings: ModelSettings | Team,
        meter: Meter,
        target: str,
        *,
        backoff_seconds: float = 1.0,
        wishes: str = "",
        asked: Ask = ask,
    ) -> None:
        self._team = settings if isinstance(settings, Team) else same_for_all(settings)
        self._meter, self._target, self._backoff, self._wishes = meter, target, backoff_seconds, wishes
        self._asked = asked

    async def propose(self, node: Node) -> list[Candidate]:
        """The rewrites of one plan, or the repair of a version that failed. None with the reason: the run goes on."""
        return await self.talked_over(node, Said())

    async def talked_over(self, node: Node, said: Said) -> list[Candidate]:
        """``propose``, without asking for what was ``said`` already."""
        try:
            if node.failure is not None:
                return [await self._repair(node, said)]
            return await self._carried_out(node, said)
        except ModelFault as fault:
            raise ProposerFailed(str(fault), final=fault.final) from fault
        except BadAnswer as bad:
            raise ProposerFailed(f"The answer of {self._team.coder.model} is left out: {bad}.") from bad

    async def _carried_out(self, node: Node, said: Said) -> list[Candidate]:
        plan = await self._ask("planner", node, planner_user(node, self._team.planner, self._wishes), said)
        anchors = anchors_of(plan, node.text)
        share = self._team.coder.share
        _inside_what_is_shown(node, anchors, self._team.planner)
        found: list[Candidate] = []
        bad: BadAnswer | None = None
        for _ in range(self._team.samples):
            user = coder_user(node, plan, anchors, share)
            answer = await self._ask("coder", node, user, said)
            try:
                text = await self._caught(node, plan, anchors, answer, said)
            except BadAnswer as error:
                bad = error
                continue
            found.append(self._candidate(node, text, plan))
        if not found and bad is not None:
            raise bad
        return found

    async def _caught(
        self, node: Node, plan: str, anchors: tuple[Anchor, ...], answer: str, said: Said
    ) -> str:
        """The file after ``answer``, which the debugger puts right when the machine catches a fault in it."""
        for left in range(self._team.repairs, -1, -1):
            try:
                return checked(node, carried_out_inside(node, anchors, answer))
            except BadAnswer as bad:
                if not left:
                    raise
                error = str(bad)
            user = debugger_answer_user(node, plan, anchors, answer, error, self._team.debugger.share)
            answer = await self._ask("debugger", node, user, said)
        raise AssertionError("unreachable")

    async def _repair(self, node: Node, said: Said) -> Candidate:
        answer = await self._ask("debugger", node, debugger_user(node, self._team.debugger), said)
        text = checked(node, apply_edits(node.text, read_edits(answer)))
        error = node.failure.message if node.failure else ""
        return self._candidate(node, text, f"Repair: {error}")

    async def _ask(self, role: Role, node: Node, user: str, said: Said) -> str:
        if (before := said.recalled(role, node)) is not None:
            return before
        settings = self._team.of(role)
        if spent := self._meter.model_spent():
            raise ModelFault(f"The model is not asked any more: {spent}.", final=True)
        system = system_prompt(role, node, self._target)
        started = time.monotonic()
        try:
            answer = await self._asked(settings, system, user, backoff_seconds=self._backoff)
        except ModelFault as fault:
            self._meter.book(entry(role, settings, fault, time.monotonic() - started))
            raise
        self._meter.book(entry(role, settings, answer, time.monotonic() - started))
        await said.add(role, node, answer.text)
        return answer.text

    def _candidate(self, node: Node, text: str, plan: str) -> Candidate:
        return Candidate(node.kernel.name, text, f"model:{self._team.coder.model}", _summary(plan))


def system_prompt(role: Role, node: Node, target: str) -> str:
    """What stays the same for all questions to ``role`` about kernels of one dialect and target: it comes first."""
    return render(f"{node.kernel.dialect}/{role}", target=target)


def planner_user(node: Node, settings: ModelSettings, wishes: str = "") -> str:
    """File first, then what is known, then what was tried: the later, the sooner it changes."""
    first, last = _visible(node, settings.share)
    return render(
        "planner_user",
        kernel=node.kernel.name,
        file=fenced(numbered(node.text, first, last)),
        digest=digest(node.measurement),
        tried=planner_window(node) + (f"The person asks: {wishes}\n" if wishes else ""),
    )


def _inside_what_is_shown(node: Node, anchors: tuple[Anchor, ...], settings: ModelSettings) -> None:
    """Raises BadAnswer: a plan names lines that the planner was not shown, which nobody is to be shown then."""
    first, last = _visible(node, settings.share)
    for anchor in anchors:
        if anchor.first < first or anchor.last > last:
            raise BadAnswer(f"the plan names lines {anchor.first}-{anchor.last}, which it was not shown")


def coder_user(node: Node, plan: str, anchors: tuple[Anchor, ...], share: Share = "file") -> str:
    """The lines around the anchors that may be shown, what may go wrong there, and the plan."""
    first_shown, last_shown = _visible(node, share)
    shown = "\n...\n".join(
        anchored(node.text, anchors, first, last)
        for first, last in _clipped(window(node.text, node.kernel.name, anchors), first_shown, last_shown)
    )
    lines = split_lines(node.text).texts
    planned = "\n".join("\n".join(lines[a.first - 1 : a.last]) for a in anchors)
    return render(
        "coder_user",
        kernel=node.kernel.name,
        file=fenced(shown),
        mistakes=told(near_mistakes(node.kernel.dialect, planned, plan)),
        window=coder_window(node, plan, share),
        count=str(len(anchors)),
        plan=plan.strip(),
    )


def debugger_answer_user(
    node: Node, plan: str, anchors: tuple[Anchor, ...], answer: str, error: str, share: Share = "file"
) -> str:
    """An answer that was caught before anything ran, with what was caught."""
    return render(
        "debugger_answer_user",
        task=coder_user(node, plan, anchors, share),
        answer=fenced(answer, "text"),
        error=error,
        mistakes=told(near_mistakes(node.kernel.dialect, error)),
    )


def debugger_user(node: Node, settings: ModelSettings) -> str:
    """A version that failed, what was changed last, its siblings and the exact error."""
    first, last = _visible(node, settings.share)
    lines = split_lines(node.text).texts[first - 1 : last]
    error = node.failure.message if node.failure else ""
    code = node.failure.code if node.failure else ""
    return render(
        "debugger_user",
        kernel=node.kernel.name,
        file=fenced("\n".join(lines)),
        change=shown_change(node, settings.share),
        window=debugger_window(node),
        mistakes=told(near_mistakes(node.kernel.dialect, error)),
        error=f"{code}: {error}",
    )


def carried_out_inside(node: Node, anchors: tuple[Anchor, ...], answer: str) -> str:
    """The file after ``answer``. What leaves the kernel is told before what leaves the anchors: it is worse.

    Raises:
        BadAnswer: as ``anchors.carried_out``, or code outside the kernel and its launch changed.
    """
    try:
        return carried_out(node.text, anchors, answer)
    except BadAnswer:
        try:
            whole = apply_edits(node.text, read_edits(answer))
        except BadAnswer:
            whole = node.text
        if whole != node.text:
            checked(node, whole)
        raise


def checked(node: Node, text: str) -> str:
    """``text``, if it may be a version of the kernel.

    Raises:
        BadAnswer: it does not parse, changes more than the kernel and its launch, or changes nothing.
    """
    try:
        outside = outside_changes(node.text, text, node.kernel.name)
        same = file_fingerprint(text) == file_fingerprint(node.text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadAnswer(f"its edits leave a file that does not parse ({error})") from error
    if outside is not None:
        raise BadAnswer(outside)
    if same:
        raise BadAnswer("the plan is not carried out: the code does what it did")
    return text


def _clipped(ranges: list[tuple[int, int]], first: int, last: int) -> list[tuple[int, int]]:
    clipped = [(max(low, first), min(high, last)) for low, high in ranges]
    return [(low, high) for low, high in clipped if low <= high]


def _visible(node: Node, share: Share) -> tuple[int, int]:
    """The first and last line of the file that may be shown."""
    if share == "kernel":
        return node.kernel.first_line, node.kernel.end_line
    return 1, len(split_lines(node.text.rstrip()).texts)


def _summary(plan: str) -> str:
    """The beginning of the plan as one line, without the line numbers it starts with."""
    words = " ".join(plan.split())
    if words[:5].upper().startswith("LINE"):
        head, _, rest = words.partition(": ") if ": " in words[:60] else words.partition(" ")
        words = rest.lstrip("0123456789-, ") or words
        del head
    return words if len(words) <= SUMMARY_CHARACTERS else words[: SUMMARY_CHARACTERS - 3].rstrip() + "..."
