"""Builds the prompts of planner, coder and debugger for one version of a kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from accelopt_agent.model.anchors import Anchor, numbered, text_with_anchors
from accelopt_agent.model.briefing import Briefing
from accelopt_agent.model.dialect_text import dialect_text
from accelopt_agent.model.digest import ARGUMENTS_SHOWN, digests
from accelopt_agent.model.plan import Plan
from accelopt_agent.model.prompt_templates import fenced, placeholders, render
from accelopt_agent.model.role_context import (
    DEBUG_LINES,
    coder_window,
    debugger_window,
    planner_window,
    shown_change,
)
from accelopt_agent.model.settings import ModelSettings, Share
from accelopt_agent.model.target_text import target_text
from accelopt_agent.model.team import Role
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.syntax.lines import split_lines
from accelopt_profiling.measurement import Dialect, KernelMeasurement


def system_prompt(role: Role, node: Node, target: str) -> str:
    """Return the prompt's part that is the same for all queries to ``role`` about kernels of one dialect and target."""
    name = f"{node.kernel.dialect}/{role}"
    if "facts" in placeholders(name):
        return render(name, target=target, facts=target_text(target))
    return render(name, target=target)


def planner_user(node: Node, settings: ModelSettings, briefing: Briefing | None = None) -> str:
    """Build the planner's prompt.

    What changes least comes first: the file, the problem, the measurements, the dialect's functions, what the memory
    knows of like kernels, the rewrites tried, and this question's line of attack.
    """
    brief = briefing or Briefing()
    first, last = visible_lines(node, settings.share)
    return render(
        "planner_user",
        kernel=node.kernel.name,
        file=fenced(numbered(node.text, first, last, brief.hidden)),
        problem=_section(brief.problem if settings.share == "file" else ""),
        digest=digests(node.measurement, _others(node, settings.share)),
        functions=dialect_text(node.kernel, node.measurement.bound, node.text),
        tried=brief.experience + planner_window(node, brief.unusable, settings.share),
        attack=brief.attack + (f"The person asks: {brief.wishes}\n" if brief.wishes else ""),
    )


def _section(text: str) -> str:
    return f"{text}\n\n" if text else ""


def _others(node: Node, share: Share) -> Sequence[KernelMeasurement]:
    """Return the measurements of the file's other kernels that may be told.

    A version measured as a whole has them in its own.
    """
    return () if share == "kernel" or node.changes_more else node.root.others


def planner_again_user(user: str, answer: str, error: str) -> str:
    """Build the planner's prompt after a plan that cannot be carried out: the question again, and why."""
    return render("planner_again_user", question=user, answer=fenced(answer, "text"), error=error)


def coder_user(
    node: Node, plan: Plan, share: Share = "file", example: str = "", briefing: Briefing | None = None
) -> str:
    """Build the coder's prompt: what may be shown of the file, the anchors marked, known mistakes, an ``example`` of a
    change that helped a like kernel, and the plan."""
    first, last = visible_lines(node, share)
    lines = split_lines(node.text).texts
    planned = "\n".join("\n".join(lines[a.first - 1 : a.last]) for a in plan.anchors or [Anchor(first, last)])
    count = len(plan.anchors)
    brief = briefing or Briefing()
    return render(
        "coder_user" if plan.anchors else "coder_rewrite_user",
        kernel=node.kernel.name,
        file=fenced(text_with_anchors(node.text, plan.anchors, first, last, brief.hidden)),
        problem=_section(brief.problem if share == "file" else ""),
        arguments=_section(_arguments(node, share)),
        functions=dialect_text(node.kernel, node.measurement.bound, planned, plan.instruction),
        mistakes=mistakes_section(near_mistakes(node.kernel.dialect, planned, plan.instruction)),
        window=example + coder_window(node, plan.instruction, share),
        what=f"{count} place{'' if count == 1 else 's'}"
        if plan.anchors
        else (", ".join(plan.rewrites) or "the file"),
        plan=plan.instruction,
    )


def _arguments(node: Node, share: Share) -> str:
    """Return what each kernel is launched with, one line each."""
    kernels = [k for k in (node.measurement, *_others(node, share)) if k.arguments]
    return "\n".join(
        f"- `{k.name}` is launched with: {', '.join(k.arguments[:ARGUMENTS_SHOWN])}" for k in kernels
    )


def debugger_answer_user(
    node: Node, plan: Plan, answer: str, error: str, share: Share = "file", briefing: Briefing | None = None
) -> str:
    """Build the debugger's prompt for an answer that failed a check before anything ran."""
    return render(
        "debugger_answer_user",
        task=coder_user(node, plan, share, "", briefing),
        answer=fenced(answer, "text"),
        error=error,
        mistakes=mistakes_section(near_mistakes(node.kernel.dialect, error)),
    )


def debugger_user(node: Node, settings: ModelSettings, briefing: Briefing | None = None) -> str:
    """Build the debugger's prompt for a version that failed: the whole last change, its siblings, the exact error, and
    on which cases it was right."""
    first, last = visible_lines(node, settings.share)
    brief = briefing or Briefing()
    code = text_with_anchors(node.text, (), first, last, brief.hidden)
    failure = node.failure or Failure("", "")
    near = f"{failure.message}\n{node.step[1] if node.step else ''}"
    return render(
        "debugger_user",
        kernel=node.kernel.name,
        file=fenced(code),
        problem=_section(brief.problem if settings.share == "file" else ""),
        arguments=_section(_arguments(node.parent or node, settings.share)),
        change=shown_change(node, settings.share, DEBUG_LINES),
        functions=dialect_text(node.kernel, node.measurement.bound, code, near),
        window=debugger_window(node),
        mistakes=mistakes_section(near_mistakes(node.kernel.dialect, failure.message)),
        error=f"{failure.code}: {failure.message}",
        cases=f"\n\n{failure.cases}" if failure.cases else "",
    )


def visible_lines(node: Node, share: Share) -> tuple[int, int]:
    """Return the first and last line of the file that may be shown."""
    if share == "kernel":
        return node.kernel.first_line, node.kernel.end_line
    return 1, len(split_lines(node.text.rstrip()).texts)


#: How many of them a prompt holds at most.
MISTAKES_SHOWN = 2


@dataclass(frozen=True)
class KnownMistake:
    """A mistake that models often make.

    ``near`` is a regular expression for text that makes it likely; ``source`` names the document that states the rule.
    """

    dialect: Dialect
    near: str
    text: str
    source: str


@cache
def mistakes() -> tuple[KnownMistake, ...]:
    data = json.loads(resources.files(__package__).joinpath("mistakes.json").read_text("utf-8"))
    return tuple(KnownMistake(**entry) for entry in data["mistakes"])


def near_mistakes(dialect: Dialect, *texts: str) -> list[KnownMistake]:
    """Return the known mistakes whose pattern matches one of ``texts`` (the planned lines, a plan, an error),
    at most ``MISTAKES_SHOWN``: those that match the last text most often first, since it says what is about
    to be done, then those that match all texts most often."""
    counts = [
        ([len(re.findall(m.near, text, re.IGNORECASE)) for text in texts], m)
        for m in mistakes() if m.dialect == dialect
    ]  # fmt: skip
    near = sorted((c for c in counts if any(c[0])), key=lambda c: (-c[0][-1], -sum(c[0])))
    return [m for _, m in near[:MISTAKES_SHOWN]]


def mistakes_section(entries: list[KnownMistake]) -> str:
    """Format the mistakes as a Markdown list with its head for a prompt; empty where there are none."""
    return "Take care:\n" + "\n".join(f"- {m.text}" for m in entries) + "\n\n" if entries else ""
