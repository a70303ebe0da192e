"""Builds what a question to a role says besides the version itself: the problem, and a line of attack of its own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from accelopt_agent.model.edit_bounds import Bounds, lines_not_run
from accelopt_agent.model.prompt_templates import fenced
from accelopt_agent.syntax.lines import split_lines
from accelopt_profiling.comparison.tolerance import rule
from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.measurement import Dialect

#: The most lines of a problem's file that are told, and of a kernel's file that is shown whole.
LINES_SHOWN, WHOLE_FILE = 120, 300

_TOLD_DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Briefing:
    """``problem`` describes the problem (``problem_text``), ``experience`` what the
    memory knows of like kernels, ``attack`` the line of attack of this question (``attack``); all in Markdown.
    ``wishes`` is the person's instruction, ``unusable`` what became of earlier plans and answers that could not be
    used, one line each; ``hidden`` are the lines of a long version that nobody is shown (``hidden_lines``)."""

    problem: str = ""
    experience: str = ""
    attack: str = ""
    wishes: str = ""
    unusable: tuple[str, ...] = ()
    hidden: frozenset[int] = frozenset()


def hidden_lines(text: str, bounds: Bounds) -> frozenset[int]:
    """Return the lines (1-based) of a version that are not shown: in a file of more than ``WHOLE_FILE`` lines, the
    functions and classes that the problem does not run."""
    return lines_not_run(bounds, text) if len(split_lines(text).texts) > WHOLE_FILE else frozenset()


def problem_text(file: KernelSource, bounds: Bounds) -> str:
    """Return the problem as Markdown: what it calls, its source where the kernel's file does not hold it, and how
    results are compared."""
    entries = ", ".join(f"`{name}`" for name in sorted(bounds.entries))
    stated = ", ".join(f"{d} {rule()[d]:g}" for d in _TOLD_DTYPES)
    compared = (
        "A result is right when it agrees with the reference: the relative L2 error, of the whole and of each row, is "
        "at most the problem's tolerance; where it states none, by the coarsest type, "
        f"{stated}. It is run with fresh draws of the inputs, with large, small, skewed and exact values, with the "
        "problem's further `shapes`, and with sizes derived from these; inputs must not be written to, and results "
        "must not be remembered."
    )
    lines = [f"The problem calls {entries}, whose signature stays. {compared}"]
    if bounds.problem:
        lines.append(f"The file holds the problem itself: {', '.join(sorted(bounds.problem))}.")
    for path, text in file.problem.files.items():
        if path.endswith(".py"):
            rows = split_lines(text.rstrip()).texts
            cut = [*rows[:LINES_SHOWN], "..."] if len(rows) > LINES_SHOWN else rows
            lines.append(f"The problem ({path.rpartition('/')[2]}):\n\n{fenced(chr(10).join(cut))}")
    return "\n\n".join(lines)


@cache
def _attacks() -> tuple[tuple[str, str, str], ...]:
    data = json.loads(resources.files(__package__).joinpath("attacks.json").read_text("utf-8"))
    return tuple((a["dialect"], a["bound"], a["text"]) for a in data["attacks"])


def attack(dialect: Dialect, bound: str | None, count: int) -> str:
    """Return the line of attack of the ``count``-th question (from 0) about a version that ``bound`` limits, and what
    the earlier questions were given; in Markdown."""
    own = [(pattern, text) for d, pattern, text in _attacks() if d == dialect]
    fitting = [t for p, t in own if p and re.search(p, bound or "", re.IGNORECASE)]
    ordered = [*fitting, *(t for _, t in own if t not in fitting)]
    before = [ordered[k % len(ordered)] for k in range(max(0, count - 3), count)]
    advice = (
        f"Begin with {ordered[count % len(ordered)]}. Another line is welcome where the facts speak for it.\n"
    )
    if before:
        advice += "Others were asked to begin with " + "; with ".join(before) + ". Plan something else.\n"
    return advice
