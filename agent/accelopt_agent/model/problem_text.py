"""Tells a model what the problem asks for: its own source, the tolerance, and what the gate tries besides."""

from __future__ import annotations

from accelopt_agent.model.edit_bounds import Bounds
from accelopt_agent.model.prompt_templates import fenced
from accelopt_agent.syntax.lines import split_lines
from accelopt_profiling.comparison.tolerance import rule
from accelopt_profiling.kernel_file import KernelFile

#: The most lines of a problem's file that are told.
LINES_SHOWN = 120

_TOLD_DTYPES = ("float32", "bfloat16", "float16")


def problem_text(file: KernelFile, bounds: Bounds) -> str:
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
            shown = split_lines(text.rstrip()).texts
            cut = [*shown[:LINES_SHOWN], "..."] if len(shown) > LINES_SHOWN else shown
            lines.append(f"The problem ({path.rpartition('/')[2]}):\n\n{fenced(chr(10).join(cut))}")
    return "\n\n".join(lines)
