"""Proposes rewrites by a model team: the planner names lines, the coder rewrites them, the debugger repairs faults."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable

from accelopt_agent.candidate import Candidate
from accelopt_agent.experience.source import ExperienceSource
from accelopt_agent.model.answer import estimated_tokens
from accelopt_agent.model.briefing import Briefing, attack, hidden_lines, problem_text
from accelopt_agent.model.client import ModelCallError, ModelQuery, query_model
from accelopt_agent.model.digest import digest
from accelopt_agent.model.edit_bounds import Bounds, beyond_bounds, bounds_of
from accelopt_agent.model.edits import InvalidAnswerError
from accelopt_agent.model.explain import lesson_user
from accelopt_agent.model.ledger import query_booked
from accelopt_agent.model.plan import Plan, apply_answer, parse_plan
from accelopt_agent.model.prompt_templates import render
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
from accelopt_agent.search.transcript import Transcript
from accelopt_agent.syntax.fingerprint import file_fingerprint
from accelopt_profiling.kernel_file import KernelFile
from accelopt_profiling.kernels import find_kernels
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
        asked: ModelQuery = query_model,
        experience: ExperienceSource | None = None,
        file: Callable[[], KernelFile] | None = None,
    ) -> None:
        self._team = settings if isinstance(settings, ModelTeam) else same_for_all(settings)
        self._meter, self._target, self._backoff, self._wishes = meter, target, backoff_seconds, wishes
        self._asked, self._file = asked, file
        self._experience = experience or ExperienceSource(None, target)
        self._known_bounds: dict[str, Bounds] = {}
        self._questions: Counter[str] = Counter()  # by version
        self._unusable: list[str] = []  # what became of plans and answers that led to no version

    async def lesson(self, slow: Node, fast: Node) -> str:
        """Return what the summarizer says of why ``fast`` is faster than ``slow``.

        Raises:
            ProposerError: there is no answer.
        """
        user = lesson_user(slow, fast, self._team.summarizer.share)
        try:
            return (await self._ask("summarizer", fast, user, Transcript())).strip()
        except ModelCallError as fault:
            raise ProposerError(str(fault), final=fault.final) from fault

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
        bounds = self._bounds(node)
        known = await self._experience.of(node)
        briefing = self._briefing(node, bounds, self._experience.planner_text(known))
        plan = await self._plan(node, bounds, briefing, transcript)
        share = self._team.coder.share
        found: list[Candidate] = []
        bad: InvalidAnswerError | None = None
        example = await interruptible(self._experience.coder_text, known, node, plan.instruction)
        for _ in range(self._team.samples):
            user = coder_user(node, plan, share, example, briefing)
            answer = await self._ask("coder", node, user, transcript)
            try:
                text = await self._apply_or_repair(node, plan, bounds, briefing, answer, transcript)
            except InvalidAnswerError as error:
                bad = error
                self._unusable.append(f"{_summary(plan.instruction)}: its answer was left out, {error}")
                continue
            found.append(self._candidate(node, text, plan.instruction))
        if not found and bad is not None:
            raise bad
        return found

    async def _plan(self, node: Node, bounds: Bounds, told: Briefing, transcript: Transcript) -> Plan:
        """Ask the planner; tell it once what is wrong with a plan that cannot be carried out. A coder that is alone is
        told what the planner would know."""
        if self._team.alone:
            more = (
                told.experience + told.attack + (f"The person asks: {told.wishes}\n" if told.wishes else "")
            )
            return Plan(render("alone", digest=digest(node.measurement), more=more))
        user = planner_user(node, self._team.planner, told)
        answer = await self._ask("planner", node, user, transcript)
        try:
            return self._parsed(answer, node, bounds)
        except InvalidAnswerError as bad:
            self._unusable.append(f"{_summary(answer)}: no usable plan, {bad}")
            if not self._team.repairs:
                raise
            first = str(bad)
        again = planner_again_user(user, answer, first)
        try:
            return self._parsed(await self._ask("planner", node, again, transcript, first), node, bounds)
        except InvalidAnswerError as bad:
            both = f"{first}, and so again" if str(bad) == first else f"{bad}; before that, {first}"
            raise InvalidAnswerError(both) from bad

    def _parsed(self, answer: str, node: Node, bounds: Bounds) -> Plan:
        return parse_plan(answer, node.text, bounds, visible_lines(node, self._team.planner.share))

    def _briefing(self, node: Node, bounds: Bounds, experience: str) -> Briefing:
        """Return what this question says besides the version; each question takes another line of attack."""
        key = node.fingerprint or node.text
        count = self._questions[key]
        self._questions[key] += 1
        line = attack(node.kernel.dialect, node.measurement.bound, count)
        return Briefing(
            self._problem(bounds),
            experience,
            line,
            self._wishes,
            tuple(self._unusable),
            hidden_lines(node.text, bounds),
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
        self, node: Node, plan: Plan, bounds: Bounds, told: Briefing, answer: str, transcript: Transcript
    ) -> str:
        """Apply ``answer`` to the file; where it is invalid, let the debugger correct it."""
        for left in range(self._team.repairs, -1, -1):
            try:
                return checked(node, bounds, apply_answer(node.text, plan, answer, bounds))
            except InvalidAnswerError as bad:
                if not left:
                    raise
                error = str(bad)
            user = debugger_answer_user(node, plan, answer, error, self._team.debugger.share, told)
            answer = await self._ask("debugger", node, user, transcript, error)
        raise AssertionError("unreachable")

    async def _repair(self, node: Node, transcript: Transcript) -> Candidate:
        bounds = self._bounds(node)
        told = Briefing(self._problem(bounds), hidden=hidden_lines(node.text, bounds))
        user = debugger_user(node, self._team.debugger, told)
        cause = f"the version fails with {node.failure.code}" if node.failure else ""
        answer = await self._ask("debugger", node, user, transcript, cause)
        text = checked(node, bounds, apply_answer(node.text, Plan(""), answer, bounds))
        return self._candidate(node, text, f"repaired: {node.failure.code if node.failure else ''}")

    async def _ask(self, role: Role, node: Node, user: str, transcript: Transcript, because: str = "") -> str:
        """Return the answer, of ``transcript`` where it has it. ``because`` tells the person what was wrong before."""
        if (before := transcript.replay(role, node)) is not None:
            return before
        settings = self._team.of(role)
        if spent := self._meter.model_spent():
            raise ModelCallError(f"The model is not asked any more: {spent}.", final=True)
        system = system_prompt(role, node, self._target)
        tokens = round(estimated_tokens(len(system) + len(user)), -2)
        cause = f": {because}" if because else ""
        self._meter.tell(f"asking the {role} (about {tokens:,} tokens){cause}")
        text, call = await query_booked(
            self._asked, role, settings, system, user, self._meter.book, self._backoff
        )
        about = "~" if call.estimated else ""
        self._meter.tell(
            f"the {role} answered after {call.seconds:.1f} s "
            f"({about}{call.tokens_in:,} tokens read, {about}{call.tokens_out:,} written)"
        )
        await transcript.add(role, node, text)
        return text

    def _candidate(self, node: Node, text: str, plan: str) -> Candidate:
        return Candidate(node.kernel.name, text, f"model:{self._team.coder.model}", _summary(plan))


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
    kernels = find_kernels(text).kernels
    if not any(k.dialect == root.kernel.dialect and not k.device_function for k in kernels):
        raise InvalidAnswerError(f"no {root.kernel.dialect} kernel is left")
    return text


def _summary(plan: str) -> str:
    """Return the first sentence of the plan as one line."""
    words = " ".join(plan.replace("`", "").replace("**", "").split())
    first = _SENTENCE_END.split(words, maxsplit=1)[0].rstrip(" ;:,")
    first = first if len(first) > 20 else words
    cut = textwrap.shorten(first, SUMMARY_CHARACTERS, placeholder="...")
    return cut or "a rewrite without a description"
