"""Defines the result type of all measurements of the project: a value, its goal, and whether it is met; prints results
as a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accelopt_lsp.cli.failures import Exit
from accelopt_lsp.cli.terminal import out, print_json
from accelopt_lsp.stderr import printable


@dataclass(frozen=True)
class GoalResult:
    """``what`` was measured, in words the goal it has, the result, and whether it meets the goal.

    ``value`` is in ``unit``; it and ``met`` are None where nothing was measured. ``detail`` says how it was measured,
    why it falls short, or what is needed to measure it.
    """

    what: str
    goal: str
    value: float | None
    unit: str
    met: bool | None
    detail: str = ""


def not_measured(what: str, goal: str, why: str) -> GoalResult:
    return GoalResult(what, goal, None, "", None, why)


def print_rows(rows: Sequence[GoalResult]) -> None:
    """Print one line for each result: what, goal, value, whether it is met, and how it was measured."""
    from rich.table import Table

    table = Table("what", "goal", "found", "", "how", box=None, pad_edge=False)
    for row in rows:
        met = {True: "met", False: "missed", None: ""}[row.met]
        number = f"{row.value:,}" if isinstance(row.value, int) else f"{row.value or 0:.3g}"
        value = "not measured" if row.value is None else f"{number} {row.unit}"
        table.add_row(printable(row.what), row.goal, value, met, printable(row.detail))
    out().print(table)


def end(rows: Sequence[GoalResult], as_json: bool, **details: Any) -> Exit:
    """Print the results, as JSON with the ``details``, and return the exit code: ``NO`` where a goal is missed."""
    met = all(row.met is not False for row in rows)
    if as_json:
        print_json({"met": met, "rows": rows, **details})
    else:
        print_rows(rows)
    return Exit.DONE if met else Exit.NO
