"""Proposes rewrites by a model team: the planner names lines, the coder rewrites them, the debugger repairs faults."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from accelopt_agent.candidate import Candidate
from accelopt_agent.model.answer import estimated_tokens
from accelopt_agent.model.briefing import Briefing, attack, hidden_lines, problem_text
from accelopt_agent.model.client import ModelCallError, ModelQuery, query_model
from accelopt_agent.model.edit_bounds import Bounds, beyond_bounds, bounds_of
from accelopt_agent.model.edits import InvalidAnswerError
from accelopt_agent.model.experience_source import ExperienceSource
from accelopt_agent.model.explain import lesson_user
from accelopt_agent.model.ledger import query_booked
from accelopt_agent.model.plan import Plan, apply_answer, parse_plan
from accelopt_agent.model.prompt_templates import render
from accelopt_agent.model.role_context import digest
from accelopt_agent.model.role_prompts import (
    coder_user,
    debugger_answer_user,
    debugger_user,
    planner_again_user,
    planner_user,
    system_prompt,
    visible_lines,
)
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.model.team import ModelTeam, Role, same_for_all
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_agent.search.recorder import TRANSCRIPT_ENTRY
from accelopt_agent.syntax.fingerprint import file_fingerprint
from accelopt_profiling.kernels import KernelSource, find_kernels
from accelopt_profiling.problems.ref import ProblemLookup
from accelopt_profiling.waiting import interruptible

#: How much of a plan becomes the candidate's summary.
SUMMARY_CHARACTERS = 160
_SENTENCE_END = re.compile(r"(?<=[a-z\])])[.;] (?=[A-Z0-9])|\.$")


class ModelProposer:
    """Queries the team about one version at a time and books every call in the run's meter. ``wishes`` is the person's
    instruction, ``asked`` the function that sends a query to a model, ``experience`` what the team is told of the
    memory, ``file`` what examines the file that is searched, with its problem."""

    name = "model"

    def __init__(
        self,
        settings: ModelSettings | ModelTeam,
        meter: Meter,
        target: str,
        *,
        backoff_seconds: float = 1.0,
        wishes: str = "",
        query: ModelQuery = query_model,
        experience: ExperienceSource | None = None,
        file: Callable[[], KernelSource] | None = None,
    ) -> None:
        self._team = settings if isinstance(settings, ModelTeam) else same_for_all(settings)
        self._meter, self._target, self._backoff, self._wishes = meter, target, backoff_seconds, wishes
        self._asked, self._file = query, file
        self._experience = experience or ExperienceSource(None, target)
        self._known_bounds: dict[str, Bounds] = {}
        self._questions: Counter[str] = Counter()  # by version
        self._asked_before: Counter[str] = Counter()  # by model and prompt
        self._unusable: list[str] = []  # what became of plans and answers that led to no version

    async def lesson(self, slow: Node, fast: Node) -> str:
        """Return what the summarizer says of why ``fast`` is faster than ``slow``.

        Raises:
            ProposerError: there is no answer.
        """
        user = lesson_user(slow, fast, self._team.summarizer.share)
        try:
            return (await self._ask("summarizer", fast, user)).strip()
        except ModelCallError as fault:
            raise ProposerError(str(fault), final=fault.final) from fault

    async def propose(self, node: Node) -> list[Candidate]:
        """Return the rewrites of one plan, or the repair of a version that failed.

        Raises:
            ProposerError: there is none, with the reason; the run goes on.
        """
        try:
            if node.failure is not None:
                return [await self._repair(node)]
            return await self._carry_out_plan(node)
        except ModelCallError as fault:
            raise ProposerError(str(fault), final=fault.final) from fault
        except InvalidAnswerError as bad:
            raise ProposerError(f"The answer of {self._team.coder.model} is left out: {bad}.") from bad

    async def _carry_out_plan(self, node: Node) -> list[Candidate]:
        bounds = self._bounds(node)
        briefing = await self._briefing(node, bounds)
        plan = await self._plan(node, bounds, briefing)
        share = self._team.coder.share
        candidates: list[Candidate] = []
        bad: InvalidAnswerError | None = None

        async def nearest() -> str:
            experience = await self._experience.of(node)
            return await interruptible(self._experience.coder_text, experience, node, plan.instruction)

        example, _ = await self._meter.paid(
            "example", str, _about(node), [briefing.attack, plan.instruction], nearest
        )
        for _ in range(self._team.samples):
            user = coder_user(node, plan, share=share, example=example, briefing=briefing)
            answer = await self._ask("coder", node, user)
            try:
                text = await self._apply_or_repair(
                    node, plan, bounds=bounds, briefing=briefing, answer=answer
                )
            except InvalidAnswerError as error:
                bad = error
                self._unusable.append(f"{_summary(plan.instruction)}: its answer was left out, {error}")
                continue
            candidates.append(self._candidate(node, text, plan.instruction))
        if not candidates and bad is not None:
            raise bad
        return candidates

    async def _plan(self, node: Node, bounds: Bounds, briefing: Briefing) -> Plan:
        """Ask the planner.

        Tell it once what is wrong with a plan that cannot be carried out. A coder that is alone is told what the
        planner would know.
        """
        if self._team.alone:
            more = (
                briefing.experience
                + briefing.attack
                + (f"The person asks: {briefing.wishes}\n" if briefing.wishes else "")
            )
            return Plan(render("alone", digest=digest(node.measurement), more=more))
        user = planner_user(node, self._team.planner, briefing)
        answer = await self._ask("planner", node, user)
        try:
            return self._parsed(answer, node, bounds)
        except InvalidAnswerError as bad:
            self._unusable.append(f"{_summary(answer)}: no usable plan, {bad}")
            if not self._team.repairs:
                raise
            first = str(bad)
        again = planner_again_user(user, answer, first)
        try:
            return self._parsed(await self._ask("planner", node, again, first), node, bounds)
        except InvalidAnswerError as bad:
            both = f"{first}, and so again" if str(bad) == first else f"{bad}; before that, {first}"
            raise InvalidAnswerError(both) from bad

    def _parsed(self, answer: str, node: Node, bounds: Bounds) -> Plan:
        return parse_plan(answer, node.text, bounds, visible_lines(node, self._team.planner.share))

    async def _briefing(self, node: Node, bounds: Bounds) -> Briefing:
        """Return what this question says besides the version.

        Each question takes another line of attack. What it is told of the memory and of earlier answers is stored with
        it: both change while a search runs.
        """
        key = node.fingerprint or node.text
        count = self._questions[key]
        self._questions[key] += 1

        async def read_context() -> _Context:
            experience = self._experience.planner_text(await self._experience.of(node))
            return _Context(experience, tuple(self._unusable))

        context, _ = await self._meter.paid(
            "context", _Context, _about(node), [self._wishes, count], read_context
        )
        line = attack(node.kernel.dialect, node.measurement.bound, count)
        return Briefing(
            self._problem(bounds),
            context.experience,
            attack=line,
            wishes=self._wishes,
            unusable=context.unusable,
            hidden=hidden_lines(node.text, bounds),
        )

    def _problem(self, bounds: Bounds) -> str:
        return problem_text(self._file(), bounds) if self._file is not None else ""

    def _bounds(self, node: Node) -> Bounds:
        """Return what may change of the search's original."""
        root = node.root
        if root.kernel.name not in self._known_bounds:
            lookup = self._file().problem if self._file is not None else ProblemLookup(None)
            self._known_bounds[root.kernel.name] = bounds_of(
                root.text, root.kernel.name, lookup.ref, lookup.files.values()
            )
        return self._known_bounds[root.kernel.name]

    async def _apply_or_repair(
        self, node: Node, plan: Plan, bounds: Bounds, briefing: Briefing, answer: str
    ) -> str:
        """Apply ``answer`` to the file. Where it is invalid, let the debugger correct it."""
        for repairs in range(self._team.repairs, -1, -1):
            try:
                return checked(node, bounds, apply_answer(node.text, plan, answer, bounds))
            except InvalidAnswerError as bad:
                if not repairs:
                    raise
                error = str(bad)
            user = debugger_answer_user(
                node, plan, answer=answer, error=error, share=self._team.debugger.share, briefing=briefing
            )
            answer = await self._ask("debugger", node, user, error)
        raise AssertionError("unreachable")

    async def _repair(self, node: Node) -> Candidate:
        bounds = self._bounds(node)
        briefing = Briefing(self._problem(bounds), hidden=hidden_lines(node.text, bounds))
        user = debugger_user(node, self._team.debugger, briefing)
        cause = f"the version fails with {node.failure.code}" if node.failure else ""
        answer = await self._ask("debugger", node, user, cause)
        text = checked(node, bounds, apply_answer(node.text, Plan(""), answer, bounds))
        return self._candidate(node, text, f"repaired: {node.failure.code if node.failure else ''}")

    async def _ask(self, role: Role, node: Node, user: str, because: str = "") -> str:
        """Return the answer, the stored one where it was paid for.

        ``because`` tells the person what was wrong before.
        """
        settings, system = self._team.of(role), system_prompt(role, node, self._target)

        async def answer() -> str:
            if spent := self._meter.model_spent():
                raise ModelCallError(f"The model is not asked any more: {spent}.", final=True)
            tokens = round(estimated_tokens(len(system) + len(user)), -2)
            cause = f": {because}" if because else ""
            self._meter.tell(f"asking the {role} (about {tokens:,} tokens){cause}")
            text, call = await query_booked(
                self._asked,
                role,
                settings=settings,
                system=system,
                user=user,
                book=self._meter.book,
                backoff_seconds=self._backoff,
            )
            about = "~" if call.estimated else ""
            self._meter.tell(
                f"the {role} answered after {call.seconds:.1f} s "
                f"({about}{call.tokens_in:,} tokens read, {about}{call.tokens_out:,} written)"
            )
            return text

        model = [settings.base_url, settings.model, settings.temperature, settings.answer_tokens]
        question = json.dumps([model, system, user])
        number = self._asked_before[question]
        self._asked_before[question] += 1
        text, before = await self._meter.paid("answer", str, _about(node), [question, number], answer)
        if not before:
            await self._meter.paid.event(TRANSCRIPT_ENTRY, {"turn": {"role": role}})
        return text

    def _candidate(self, node: Node, text: str, plan: str) -> Candidate:
        return Candidate(node.kernel.name, text, f"model:{self._team.coder.model}", _summary(plan))


@dataclass(frozen=True)
class _Context:
    """What a question says of the memory, and of earlier answers that could not be used."""

    experience: str
    unusable: tuple[str, ...]


def _about(node: Node) -> tuple[str, str]:
    return node.text, node.kernel.name


def checked(node: Node, bounds: Bounds, text: str) -> str:
    """Return ``text`` if it may be a version of the file.

    Raises:
        InvalidAnswerError: it does not parse, changes what may not change, has no kernel left, or changes nothing.
    """
    root = node.root
    try:
        beyond = beyond_bounds(bounds, root.text, text)
        same = file_fingerprint(text) == file_fingerprint(node.text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InvalidAnswerError(f"its edits leave a file that does not parse ({error})") from error
    if beyond is not None:
        raise InvalidAnswerError(beyond)
    if same:
        raise InvalidAnswerError("the plan is not carried out: the code does what it did")
    if not any(k.dialect == root.kernel.dialect for k in find_kernels(text).launched):
        raise InvalidAnswerError(f"no {root.kernel.dialect} kernel is left")
    return text


def _summary(plan: str) -> str:
    """Return the first sentence of the plan as one line."""
    words = " ".join(plan.replace("`", "").replace("**", "").split())
    first = _SENTENCE_END.split(words, maxsplit=1)[0].rstrip(" ;:,")
    first = first if len(first) > 20 else words
    cut = textwrap.shorten(first, SUMMARY_CHARACTERS, placeholder="...")
    return cut or "a rewrite without a description"
