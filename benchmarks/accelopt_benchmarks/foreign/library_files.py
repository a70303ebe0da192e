"""Profiles kernel files of libraries the way a new user meets them: through the command line, in their environment."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from accelopt_benchmarks.foreign.command_line import last_line, run_accelopt
from accelopt_benchmarks.result import GoalResult

#: ``file``: as it is. ``problem``: after ``accelopt problem``, unedited.
Way = Literal["file", "problem"]
FileSet = Literal["tuned", "lot"]

#: The share of the files that should have a number, by way and set.
_GOALS: dict[tuple[Way, FileSet], float] = {("problem", "tuned"): 25 / 39, ("problem", "lot"): 0.5}


@dataclass(frozen=True)
class LibraryFile:
    """A file of a package, below the folder that the package is imported from."""

    package: str
    path: str
    set: FileSet


@dataclass(frozen=True)
class LibraryOutcome:
    """``kernels`` of the file have a time, of ``of`` that it holds; ``us`` is the longest of them in microseconds.
    ``trouble`` is the first error, or why there is no time; ``seconds`` is what the command took."""

    file: LibraryFile
    way: Way
    kernels: int
    of: int
    us: float | None
    correctness: str
    seconds: float
    trouble: str


def read_library_files() -> list[LibraryFile]:
    """The files of both sets, as the data file lists them."""
    text = files("accelopt_benchmarks.foreign").joinpath("library_files.json").read_text("utf-8")
    return [LibraryFile(**row) for row in json.loads(text)["files"]]


def site_packages(python: str) -> Path:
    """The folder that the environment of ``python`` has its packages in. Raises OSError and CalledProcessError."""
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    return Path(
        subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    )


async def profile_library_files(
    chosen: Sequence[LibraryFile],
    way: Way,
    folders: Sequence[Path],
    python: str,
    work: Path,
    at_once: int = 2,
) -> AsyncGenerator[LibraryOutcome, None]:
    """Outcomes in the order in which they are there. ``folders`` are searched for each file: the site-packages of
    ``python`` and checkouts. Each package is copied below ``work``, so that nothing is written where it lies."""
    places = asyncio.Semaphore(at_once)
    copies: dict[Path, Path] = {}

    async def outcome(file: LibraryFile) -> LibraryOutcome:
        folder = next((f for f in folders if (f / file.path).is_file()), None)
        if folder is None:
            return LibraryOutcome(
                file, way, 0, 0, None, "", 0.0, "the file is not there: install its package"
            )
        top = folder / Path(file.path).parts[0]
        if top not in copies:
            copies[top] = copy_package(top, work / str(len(copies)) / top.name).parent
        async with places:
            return await _profiled(file, way, copies[top] / file.path, python)

    for done in asyncio.as_completed([outcome(file) for file in chosen]):
        yield await done


def copy_package(top: Path, copy: Path) -> Path:
    """Copy the package ``top`` to ``copy``, without compiled code."""

    def large(folder: str, names: list[str]) -> set[str]:
        paths = [Path(folder, name) for name in names]
        return {p.name for p in paths if p.name == "__pycache__" or (p.is_file() and p.suffix == ".so")}

    shutil.copytree(top, copy, ignore=large, ignore_dangling_symlinks=True)
    return copy


async def _profiled(file: LibraryFile, way: Way, path: Path, python: str) -> LibraryOutcome:
    began = time.monotonic()
    trouble = ""
    if way == "problem":
        code, _, errors = await run_accelopt(["problem", str(path)], python)
        trouble = last_line(errors) if code else ""
    code, printed, errors = await run_accelopt(["profile", str(path), "--target", "h100", "--json"], python)
    seconds = time.monotonic() - began
    try:
        report: dict[str, Any] = json.loads(printed)
        kernels: list[dict[str, Any]] = report["kernels"]
    except (ValueError, KeyError):
        return LibraryOutcome(
            file, way, 0, 0, None, "", seconds, trouble or last_line(errors) or f"exit code {code}"
        )
    times = [k["latency"]["us"] for k in kernels if k["latency"]["us"] is not None]
    said = [*(f for k in kernels for f in k["findings"]), *report["findings"]]
    wrong = [f["message"] for f in said if f["severity"] == "error"]
    first = (wrong or [f["message"] for f in said if not times] or [""])[0]
    statuses = sorted({k["correctness"]["status"] for k in kernels if k["latency"]["us"] is not None})
    return LibraryOutcome(
        file,
        way,
        len(times),
        len(kernels),
        max(times, default=None),
        ", ".join(statuses),
        seconds,
        trouble or first,
    )


def rows(outcomes: Sequence[LibraryOutcome]) -> list[GoalResult]:
    """The share of files with a number, by way and set."""
    table: list[GoalResult] = []
    for way, chosen in dict.fromkeys((o.way, o.file.set) for o in outcomes):
        group = [o for o in outcomes if (o.way, o.file.set) == (way, chosen)]
        good = sum(o.kernels > 0 for o in group)
        goal = _GOALS.get((way, chosen))
        seconds = sorted(o.seconds for o in group if o.kernels)
        detail = f"median {seconds[len(seconds) // 2]:.1f} s" if seconds else ""
        table.append(
            GoalResult(
                f"files of set {chosen!r} with a number, way {way!r}",
                "none set" if goal is None else f">= {100 * goal:.0f} %",
                good,
                f"of {len(group)}",
                None if goal is None else good >= goal * len(group),
                detail,
            )
        )
    return table
