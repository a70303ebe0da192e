"""Builds the prompts of planner, coder and debugger for one version.

Beside the version they tell the figures of its target, and the functions of its dialect with their signatures, those
first that the kernel's limit calls for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from typing import Any

from accelopt_agent.model.briefing import Briefing
from accelopt_agent.model.edits import Anchor, numbered, text_with_anchors
from accelopt_agent.model.plan import Plan
from accelopt_agent.model.prompt_templates import fenced, placeholders, render
from accelopt_agent.model.role_context import (
    ARGUMENTS_SHOWN,
    DEBUG_LINES,
    coder_window,
    debugger_window,
    digests,
    planner_window,
    shown_change,
)
from accelopt_agent.model.settings import ModelSettings, Share
from accelopt_agent.model.team import Role
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.syntax.lines import split_lines
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import Dialect, KernelMeasurement
from accelopt_profiling.nki.operations.table import NkiDialect, operations
from accelopt_profiling.targets import UnknownTargetError, load_target
from accelopt_profiling.triton.functions.table import Version
from accelopt_profiling.triton.functions.table import functions as triton_functions
from accelopt_profiling.triton_adapter.versions import NEWEST, minor_version


def system_prompt(role: Role, node: Node, target: str) -> str:
    """Return the part of a prompt that all queries to ``role`` share.

    They are about kernels of one dialect and target.
    """
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
    """Build the planner's prompt after a plan that cannot be carried out.

    It is the question again, and why.
    """
    return render("planner_again_user", question=user, answer=fenced(answer, "text"), error=error)


def coder_user(
    node: Node, plan: Plan, share: Share = "file", example: str = "", briefing: Briefing | None = None
) -> str:
    """Build the coder's prompt.

    It shows what may be shown of the file, the anchors marked, known mistakes, an ``example`` of a change that helped a
    like kernel, and the plan.
    """
    first, last = visible_lines(node, share)
    lines = split_lines(node.text).texts
    planned = "\n".join("\n".join(lines[a.first - 1 : a.last]) for a in plan.anchors or [Anchor(first, last)])
    count = len(plan.anchors)
    brief = briefing or Briefing()
    return render(
        "coder_user" if plan.anchors else "coder_rewrite_user",
        kernel=node.kernel.name,
        file=fenced(text_with_anchors(node.text, plan.anchors, first=first, last=last, hidden=brief.hidden)),
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
    """Build the debugger's prompt for an answer that failed before a run."""
    return render(
        "debugger_answer_user",
        task=coder_user(node, plan, share=share, example="", briefing=briefing),
        answer=fenced(answer, "text"),
        error=error,
        mistakes=mistakes_section(near_mistakes(node.kernel.dialect, error)),
    )


def debugger_user(node: Node, settings: ModelSettings, briefing: Briefing | None = None) -> str:
    """Build the debugger's prompt for a version that failed.

    It tells the whole last change, its siblings, the exact error, and on which cases it was right.
    """
    first, last = visible_lines(node, settings.share)
    brief = briefing or Briefing()
    code = text_with_anchors(node.text, (), first=first, last=last, hidden=brief.hidden)
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
    """Return the first and last line that may be shown."""
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
    """Return the known mistakes whose pattern matches one of ``texts``.

    The texts are the planned lines, a plan, an error. At most ``MISTAKES_SHOWN`` are returned: those that match the
    last text most often first, since it says what is about to be done, then those that match all texts most often.
    """
    counts = [
        ([len(re.findall(m.near, text, re.IGNORECASE)) for text in texts], m)
        for m in mistakes() if m.dialect == dialect
    ]  # fmt: skip
    near = sorted((c for c in counts if any(c[0])), key=lambda c: (-c[0][-1], -sum(c[0])))
    return [m for _, m in near[:MISTAKES_SHOWN]]


def mistakes_section(entries: list[KnownMistake]) -> str:
    """Format the mistakes as a Markdown list; empty where there are none."""
    return "Take care:\n" + "\n".join(f"- {m.text}" for m in entries) + "\n\n" if entries else ""


#: So many characters of signatures are told; what does not fit is named only.
CHARACTERS = 5200


@cache
def _topics() -> dict[str, Any]:
    topics: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath("dialect_topics.json").read_text("utf-8")
    )
    return topics


#: NKI's packages.
_PACKAGES: dict[str, NkiDialect] = {"neuronxcc.nki": "beta1", "nki": "current"}


@cache
def dialect_functions() -> dict[str, list[dict[str, str]]]:
    """Return the functions of each dialect.

    Of NKI they are those that the emulator computes, of Triton those of the installed version, or of the newest one
    where none is.
    """
    return {
        "triton": [
            {"name": f"tl.{o.name}", "signature": f"({parameters})", "about": ""}
            for o in triton_functions().values()
            if (parameters := o.parameters(_triton_version())) is not None
        ],
        **{
            package: [
                {"name": o.name, "signature": str(o.signatures[dialect]), "about": o.about}
                for o in operations().values()
                if dialect in o.computes
            ]
            for package, dialect in _PACKAGES.items()
        },
    }


def _triton_version() -> Version:
    try:
        return min(minor_version(metadata.version("triton")), NEWEST)
    except metadata.PackageNotFoundError:
        return NEWEST


def dialect_of(kernel: Kernel) -> str:
    """Return "triton", "neuronxcc.nki" or "nki"."""
    if kernel.dialect == "triton":
        return "triton"
    return "neuronxcc.nki" if kernel.beta1 else "nki"


def dialect_text(
    kernel: Kernel, bound: str | None, text: str, plan: str = "", characters: int = CHARACTERS
) -> str:
    """Return the functions that a rewrite of ``kernel`` may use, as Markdown.

    First come those that ``plan`` or an error speaks of, then those for what limits it (``bound``), then those that
    ``text`` uses, then the others.
    """
    functions = dialect_functions().get(dialect_of(kernel), [])
    patterns = _topics()["topics"]
    topics = next(
        w["topics"] for w in _topics()["wanted"] if re.search(w["limit"], bound or "", re.IGNORECASE)
    )
    used, planned = set(re.findall(r"\b\w+\.\w+", text)), set(re.findall(r"\w+", plan.lower()))

    def rank(entry: dict[str, str]) -> int:
        if entry["name"].rpartition(".")[2] in planned:
            return -1
        place = next((k for k, t in enumerate(topics) if re.search(patterns[t], entry["name"])), len(topics))
        return min(place, len(topics) - 1) if entry["name"] in used else place

    groups: dict[tuple[str, str], list[str]] = {}
    for entry in sorted(functions, key=rank):
        groups.setdefault((entry["signature"], entry["about"]), []).append(entry["name"])
    lines, rest = _within(list(groups.items()), characters)
    also = f"\nAlso: {', '.join(rest)}" if rest else ""
    return "\n".join(lines) + also


def _within(groups: Sequence[Any], characters: int) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    rest: list[str] = []
    for (signature, about), names in groups:
        line = (
            f"- {', '.join(names)}{signature}"
            if len(names) == 1
            else f"- {', '.join(names)}: each {signature}"
        )
        line += f": {about}" if about else ""
        if characters >= len(line):
            characters -= len(line)
            lines.append(line)
        else:
            rest += names
    return lines, rest


#: Figures of a GPU that say nothing about how to write a kernel.
_UNTOLD = frozenset(
    {"dram_bytes", "register_allocation", "shared_memory_allocation", "shared_memory_reserved_per_program"}
)
#: The parts of a NeuronCore's file that are told, in this order.
_PARTS = ("limits", "clock_ghz", "peaks", "dma", "cost")
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@cache
def target_text(name: str) -> str:
    """Return the target's sizes, rates and costs as a Markdown list.

    Each part has a line; "" for an unknown target.
    """
    try:
        target = load_target(name)
    except UnknownTargetError:
        return ""
    if target.kind == "gpu":
        figures = {k: (f.value, f.unit) for k, f in target.figures.items() if k not in _UNTOLD}
        hardware = [_figure(k, v, u) for k, (v, u) in figures.items() if not k.startswith("model.")]
        modelled = [_figure(k[6:], v, u) for k, (v, u) in figures.items() if k.startswith("model.") and u]
        lines = [
            f"- {target.title}: {', '.join(hardware)}",
            f"- assumed by the time model: {', '.join(modelled)}",
        ]
    else:
        lines = [f"- {target.title}"]
        for part in _PARTS:
            entries = ", ".join(_entries(target.data.get(part, {})))
            lines += [f"- {part.replace('_', ' ')}: {entries}"] if entries else []
    return "\n".join(lines)


def _entries(part: Mapping[str, Any]) -> Iterator[str]:
    for name, entry in part.items():
        if isinstance(entry, Mapping) and isinstance(entry.get("value"), (int, float)):
            yield _figure(name, entry["value"], str(entry.get("unit", "")))


def _figure(name: str, value: float, unit: str) -> str:
    rate = unit.endswith(("/s", "Hz"))
    scale, letter = next(((s, x) for s, x in _SCALES if rate and value >= max(s, 1e5)), (1.0, ""))
    figure = f"{value / scale:.4g}" if scale > 1 or value % 1 else f"{value:.0f}"
    return f"{name.replace('_', ' ').replace('.', ' ')} {figure} {letter}{unit}".strip()
