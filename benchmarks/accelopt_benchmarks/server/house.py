"""Counts the project itself: lines and modules of each room, and what an addition changes, by the pages for it."""

from __future__ import annotations

import re
from pathlib import Path

from accelopt_benchmarks.checkout import ROOT
from accelopt_benchmarks.result import GoalResult

ROOMS = ("profiling", "agent", "accelopt_lsp", "memory_db", "nkibench", "benchmarks", "tests")
#: Lines of the five rooms of the product.
GOAL = 92_000
#: A block of a page with the file of the project that it makes or changes.
_BLOCK = re.compile(r"^```(python|diff) (\w[\w./-]*/[\w./-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


async def house() -> list[GoalResult]:
    """Return a row for each room, one for the product, and one for each kind of addition."""
    rows, product = [], 0
    for room in ROOMS:
        files = [f for f in (ROOT / room).rglob("*.py") if "__pycache__" not in f.parts]
        lines = sum(f.read_text("utf-8").count("\n") for f in files)
        product += lines if room in ROOMS[:5] else 0
        rows.append(_counted(f"lines of Python in {room}", lines, f"{len(files)} modules"))
    rows.append(GoalResult("lines of the product's rooms", f"<= {GOAL}", product, "lines", product <= GOAL))
    pages = sorted((ROOT / "docs/contributing").glob("*.md"))
    return [*rows, *(_addition(page) for page in pages)]


def _addition(page: Path) -> GoalResult:
    blocks = _BLOCK.findall(page.read_text("utf-8"))
    files = {file for _, file, _ in blocks}
    lines = [
        line
        for language, _, text in blocks
        for line in text.splitlines()
        if line.strip() and (language == "python" or line[0] in "+-")
    ]
    return _counted(f"lines to add: {page.stem}", len(lines), f"in {len(files)} files, {page.name}")


def _counted(what: str, lines: int, detail: str) -> GoalResult:
    return GoalResult(what, "none set", lines, "lines", None, detail)
