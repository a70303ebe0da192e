"""Runs the parts in turn, writes each part's result before the next begins, and all of them as one Markdown page."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from accelopt_benchmarks.device import PARTS
from accelopt_benchmarks.device.estimates import estimates
from accelopt_benchmarks.device.part_result import PartResult, Table, attempt
from accelopt_benchmarks.device.session import DeviceSession, open_session
from accelopt_benchmarks.device.timing import timing
from accelopt_benchmarks.device.tricks import tricks_on_device
from accelopt_benchmarks.device.worker import worker
from accelopt_benchmarks.result import GoalResult
from accelopt_profiling.plain import from_plain, to_plain

#: What measures each part.
MEASURES: dict[str, Callable[[DeviceSession], Awaitable[PartResult]]] = {
    "worker": worker,
    "timing": timing,
    "estimates": estimates,
    "tricks": tricks_on_device,
}


async def measure(
    parts: list[str], folder: Path, seconds: float, tell: Callable[[str], None]
) -> list[PartResult]:
    """Measure ``parts`` within ``seconds`` together, and write ``folder/PART.json`` behind each.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tell("opening the device ...")
    place = await open_session(seconds)
    results: list[PartResult] = []
    try:
        for name in parts:
            tell(f"{name}: {place.left():.0f} s left ...")
            began = time.perf_counter()
            one = await attempt(MEASURES[name](place), place.left() + 30)
            part = PartResult(name, lacks=[f"The part failed: {one}"]) if isinstance(one, str) else one
            part = replace(
                part, device=place.device, toolchain=place.toolchain, seconds=time.perf_counter() - began,
                when=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            )  # fmt: skip
            (folder / f"{name}.json").write_text(json.dumps(to_plain(part), indent=1), encoding="utf-8")
            results.append(part)
    finally:
        await place.host.close()
    return results


def read_found(folder: Path) -> list[PartResult]:
    """Return what earlier runs left anywhere below ``folder``, in the order of the parts, the newest of each.

    Raises:
        ValueError: a file cannot be read.
    """
    newest: dict[str, PartResult] = {}
    for file in sorted(folder.rglob("*.json")):
        if file.stem in PARTS:
            try:
                one = from_plain(PartResult, json.loads(file.read_text(encoding="utf-8")))
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from None
            if file.stem not in newest or newest[file.stem].when <= one.when:
                newest[file.stem] = one
    return [newest[name] for name in PARTS if name in newest]


def page(results: list[PartResult]) -> str:
    """Return the page as Markdown, a section a part."""
    devices = sorted({one.device or "no GPU" for one in results})
    lines = [f"# Measured on {', '.join(devices)}", ""]
    for one in results:
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
            lines += ["What was lacking:", "", *(f"- {_plain(lack)}" for lack in one.lacks), ""]
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
