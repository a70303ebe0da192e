"""Simulates a whole team of models: reads the real prompts and answers in the form that they ask for."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from random import Random

from accelopt_agent.model.edit_bounds import beyond_bounds, bounds_of
from accelopt_agent.model.edits import MOST_ANCHORS
from accelopt_agent.model.prompt_templates import fenced, template
from accelopt_agent.model.team import ROLES, Role
from accelopt_agent.rules.catalogue import proposals
from accelopt_agent.syntax.lines import split_lines
from accelopt_benchmarks.simulated.edit import Edit, edit_of, edited
from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.source_text import source_lines

_BLOCK = re.compile(r"^(`{3,})\w*\n(.*?)\n?\1$", re.MULTILINE | re.DOTALL)
_KERNEL = re.compile(r"kernel `([^`]+)`")
_NUMBERED = re.compile(r"^\d+ ?", re.MULTILINE)

#: What breaks a line so that the result is wrong; the first that fits is taken.
_WRONG = (
    (" + ", " - "), (" * ", " + "), (" - ", " + "), (".multiply(", ".add("), (".add(", ".subtract("),
    ("op=nl.add", "op=nl.maximum"),
)  # fmt: skip


@dataclass(frozen=True)
class Skill:
    """Chances, 0..1.

    A plan is a rewrite of the catalogue with chance ``knows``, else an edit that changes no cost. What is written for a
    plan is broken with chance ``breaks``; a broken edit crashes with chance ``crashes``, else its result is wrong. A
    repair succeeds with chance ``repairs``.

    The defaults lie among what was published. STARK's agents (per attempt): 83-97 % of the kernels compile and
    15-61 % are right. AccelOpt's partial trace: 510 kernels of 37 task-iterations (up to 144 kernels each) were
    faster than the first one.
    """

    knows: float = 0.5
    breaks: float = 0.5
    crashes: float = 0.25
    repairs: float = 0.5


@dataclass(frozen=True)
class Question:
    """A system and a user prompt of the team, and what can be known of it from its text."""

    system: str
    user: str

    @property
    def role(self) -> Role | None:
        """Whose prompt it is; None of none of ours."""
        for role in ROLES:
            heads = (template(f"{dialect}/{role}").partition("{{")[0] for dialect in ("nki", "triton"))
            if any(self.system.startswith(head) for head in heads):
                return role
        return None

    @property
    def kernel(self) -> str:
        """The name of the kernel that it is about."""
        match = _KERNEL.search(self.user)
        return match[1] if match else ""

    @property
    def blocks(self) -> tuple[str, ...]:
        """The fenced blocks: the file, changes, answers."""
        return tuple(match[2] for match in _BLOCK.finditer(self.user))

    @property
    def caught(self) -> bool:
        """It is about an answer that was caught before anything ran."""
        return self.user.startswith(template("debugger_answer_user").partition("{{")[0])

    @property
    def alone(self) -> bool:
        """It asks a coder for whom nobody plans."""
        return self.role == "coder" and template("alone").partition("{{")[0].strip() in self.user

    @property
    def key(self) -> str:
        """The same for the same role and code, however the prompts are worded and whatever numbers are told."""
        plan = self.user.rstrip().rpartition("\n\n")[2] if self.role == "coder" else ""
        parts = (self.role or "", self.kernel, *self.blocks, plan)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


class SimulatedTeam:
    """Answers with the stated ``skill``: what it says to the ``count``-th time that it is asked the same is drawn from
    ``seed``, whatever it was asked in between. It plans rewrites of the rule catalogue, without knowing their worth."""

    def __init__(self, skill: Skill | None = None, seed: int = 0) -> None:
        self.skill, self.seed = skill or Skill(), seed
        self._plans: dict[str, Edit] = {}
        self._right: dict[str, str] = {}

    def answer(self, question: Question, count: int) -> str:
        random = self.draws(question, count)
        if question.role == "planner":
            return self._plan(question, random)
        if question.alone:
            return self._at_once(question, random)
        if question.role == "coder" and (edit := self._planned(question)) is not None:
            return self._carried_out(edit, question, random).answer
        if question.role == "debugger":
            return self._repair(question, random)
        if question.role == "summarizer":
            return "It is faster because the same result is reached with less work."
        return "I do not know what is meant."

    def draws(self, question: Question, count: int) -> Random:
        """Return what the answer is drawn from."""
        return Random(f"{self.seed} {question.key} {count}")

    def skill_for(self, question: Question, edit: Edit | None = None) -> Skill:
        """Return the skill with which the question is answered, ``edit`` where it is about a known one."""
        return self.skill

    def ideas(self, question: Question, edits: list[Edit]) -> list[Edit]:
        """Return those of the catalogue's ``edits`` that may be planned."""
        return edits

    def _planned(self, question: Question) -> Edit | None:
        """Return what was planned for the question, which ends with the plan (before an answer that was
        caught)."""
        positions = {plan: question.user.rfind(plan) for plan in self._plans}
        plan = max(positions, key=lambda p: (positions[p], len(p)), default=None)
        return None if plan is None or positions[plan] < 0 else self._plans[plan]

    def _plan(self, question: Question, random: Random) -> str:
        edit = self._idea(question, random)
        if edit is None:
            return "I see no kernel."
        self._plans[edit.plan.partition("\n")[2].strip()] = edit
        return edit.plan

    def _idea(self, question: Question, random: Random) -> Edit | None:
        """Return a rewrite of the kernel asked about: of the catalogue, or one that changes no cost."""
        text = _NUMBERED.sub("", question.blocks[0]) + "\n" if question.blocks else ""
        kernel = next((k for k in find_kernels(text).kernels if k.name == question.kernel), None)
        if kernel is None:
            return None
        edits = self.ideas(question, _edits(text, kernel))
        if edits and random.random() < self.skill_for(question).knows:
            return random.choice(edits)
        return _tidied(text, kernel)

    def _carried_out(self, edit: Edit, question: Question, random: Random) -> Edit:
        skill = self.skill_for(question, edit)
        if random.random() >= skill.breaks:
            return edit
        broken = _broken(edit, crashes=random.random() < skill.crashes)
        self._right[_bare(broken.after)] = edit.after
        return broken

    def _at_once(self, question: Question, random: Random) -> str:
        """Answer a coder's question that nobody planned for: an idea, carried out in the whole file."""
        edit = self._idea(question, random)
        if edit is None:
            return "I see no kernel."
        return fenced(self._carried_out(edit, question, random).after)

    def _repair(self, question: Question, random: Random) -> str:
        if random.random() < self.skill_for(question).repairs:
            if question.caught:
                edit = self._planned(question)
                if edit is not None:
                    return edit.answer
            elif question.blocks:
                text = question.blocks[0] + "\n"
                right = self._right.get(_bare(text))
                if right is not None:
                    return _searched(text, right)
        return "I cannot see what is wrong."


def _edits(text: str, kernel: Kernel) -> list[Edit]:
    """Return the rewrites of the catalogue that a team may make: inside the kernel, in a few places."""
    edits, bounds = [], bounds_of(text, kernel.name)
    for candidate in proposals(text, kernel):
        edit = edit_of(text, candidate)
        if len(edit.anchors) <= MOST_ANCHORS and beyond_bounds(bounds, text, edit.after) is None:
            edits.append(edit)
    return edits


def _tidied(text: str, kernel: Kernel) -> Edit:
    """Return an edit that changes no cost: a name for a number that nobody uses."""
    number = 1 + max((int(n) for n in re.findall(r"\bstep_(\d+)\b", text)), default=0)
    lines = list(split_lines(text).texts)
    last = kernel.end_line - 1
    indent = lines[last][: len(lines[last]) - len(lines[last].lstrip())]
    name = f"step_{number}"
    after = "\n".join([*lines[:last], f"{indent}{name} = {number}", *lines[last:]])
    return edited(
        text, after, f"Name the steps of the kernel ({name}), so that the compiler keeps them apart."
    )


def _broken(edit: Edit, *, crashes: bool) -> Edit:
    """Return the edit with a fault: an operation that is another one, or a name that does not exist."""
    changes = [list(lines) for lines in edit.changes]
    for lines in changes if not crashes else []:
        for at, line in enumerate(lines):
            for right, wrong in _WRONG:
                if right in line:
                    lines[at] = line.replace(right, wrong, 1)
                    return _applied(edit, changes)
    last = next((lines for lines in reversed(changes) if lines), None)
    if last is None:
        return edit
    head = last[-1]
    last.append(f"{head[: len(head) - len(head.lstrip())]}forgotten = not_defined")
    return _applied(edit, changes)


def _applied(edit: Edit, changes: list[list[str]]) -> Edit:
    lines = list(split_lines(edit.before).texts)
    for anchor, new in reversed(list(zip(edit.anchors, changes, strict=True))):
        lines[anchor.first - 1 : anchor.last] = new
    return replace(edit, after="\n".join(lines), changes=tuple(tuple(lines) for lines in changes))


def _searched(text: str, right: str) -> str:
    """From ``text`` to ``right`` as one search-and-replace edit, with so many lines around it that it fits once."""
    old, new = split_lines(text).texts, split_lines(right).texts
    first = next(
        (k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    same = next((k for k, (a, b) in enumerate(zip(reversed(old), reversed(new), strict=False)) if a != b), 0)
    low, tail = first, min(same, len(old) - first, len(new) - first)
    while low > 0 and _times(old, old[low : len(old) - tail]) != 1:
        low -= 1
    search, becomes = old[low : len(old) - tail], new[low : len(new) - tail]
    return "\n".join(["<<<<<<< SEARCH", *search, "=======", *becomes, ">>>>>>> REPLACE"])


def _times(lines: tuple[str, ...], part: tuple[str, ...]) -> int:
    if not any(line.strip() for line in part):
        return 0
    return sum(lines[k : k + len(part)] == part for k in range(len(lines) - len(part) + 1))


def _bare(text: str) -> str:
    return "\n".join(line.rstrip() for line in source_lines(text.strip()))
