"""Formats the results of a device as one Markdown page: device, date, tables, and what was missing."""

from __future__ import annotations

from accelopt_benchmarks.device.part_result import PartResult, Table
from accelopt_benchmarks.result import GoalResult


def page(found: list[PartResult]) -> str:
    """Return the page as Markdown, a section a part."""
    devices = sorted({one.device or "no GPU" for one in found})
    lines = [f"# Measured on {', '.join(devices)}", ""]
    for one in found:
        tools = ", ".join(f"{name} {version}" for name, version in sorted(one.toolchain.items()))
        lines += [
            f"## {one.part}",
            "",
            f"{one.when}, {one.device or 'no GPU'}; {tools}; {one.seconds:.0f} s.",
            "",
        ]
        if one.rows:
            lines += [*_table(["what", "goal", "found", "", "how"], [_cells(row) for row in one.rows]), ""]
        for table in one.tables:
            lines += _titled(table)
        if one.lacks:
            lines += ["What was lacking:", "", *(f"- {_plain(said)}" for said in one.lacks), ""]
    return "\n".join(lines).rstrip() + "\n"


def _titled(table: Table) -> list[str]:
    if not table.rows:
        return []
    return [f"### {table.title}", "", *_table(table.header, table.rows), ""]


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(_plain(cell) for cell in line) + " |" for line in lines]


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _cells(row: GoalResult) -> list[str]:
    value = "not measured" if row.value is None else f"{row.value:,.4g} {row.unit}".strip()
    return [row.what, row.goal, value, {True: "met", False: "missed", None: ""}[row.met], row.detail]
