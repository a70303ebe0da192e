"""Profiles kernel files of libraries the way a new user meets them: through the command line, in their environment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from accelopt_benchmarks.result import GoalResult

#: ``file``: as it is. ``problem``: after ``accelopt problem``, unedited. ``record``: after ``accelopt record`` of the
#: file's own command: a test of its package, or a small program that uses it.
Way = Literal["file", "problem", "record"]
FileSet = Literal["tuned", "lot", "lot-2", "lot-3", "lot-4", "lot-5", "nki", "nki-lot", "nki-tests"]

#: The share of the files that should have a number, by way and set.
_GOALS: dict[tuple[Way, FileSet], float] = {
    ("problem", "tuned"): 25 / 39,
    ("problem", "lot"): 0.5,
    ("record", "tuned"): 35 / 39,
    ("record", "lot"): 0.75,
    ("problem", "lot-2"): 0.5,
    ("problem", "lot-3"): 0.5,
    ("problem", "lot-4"): 0.5,
    ("problem", "lot-5"): 0.5,
    ("file", "nki"): 0.5,
    ("file", "nki-lot"): 0.5,
    ("problem", "nki"): 2 / 3,
    ("problem", "nki-lot"): 2 / 3,
    ("file", "nki-tests"): 38 / 41,
}
#: Seconds that a recorded command gets.
_RECORD_SECONDS = 240
_FOLDER = files("accelopt_benchmarks.foreign")


@dataclass(frozen=True)
class LibraryFile:
    """A file of a package, below the folder that the package is imported from. ``record`` is a command that launches
    its kernels; ``beside`` are what it needs of the package's repository.
    """

    package: str
    path: str
    set: FileSet
    record: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class LibraryOutcome:
    """``kernels`` of the file have a time, of ``of`` that it holds.

    ``us`` is the longest of them in microseconds. ``trouble`` is the first error, or why there is no time; ``seconds``
    is what the command took.
    """

    file: LibraryFile
    way: Way
    kernels: int = 0
    of: int = 0
    us: float | None = None
    correctness: str = ""
    seconds: float = 0.0
    trouble: str = ""

    @property
    def good(self) -> bool:
        """True with a time for a kernel. Of a test, with nothing that it asserts failed."""
        return self.kernels > 0 and not (self.file.set == "nki-tests" and "failed" in self.correctness)


def read_library_files() -> list[LibraryFile]:
    """Return the files of both sets, as the data file lists them."""
    data = json.loads(_FOLDER.joinpath("library_files.json").read_text("utf-8"))
    return [
        LibraryFile(
            row["package"], row["path"], row["set"], tuple(row.get("record", ())),
            tuple(data["tests"].get(row["package"], {}).get("beside", ())),
        )
        for row in data["files"]
    ]  # fmt: skip


def site_packages(python: str) -> Path:
    """Return the folder that the environment of ``python`` has its packages in.

    Raises OSError and CalledProcessError.
    """
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
    """Yield outcomes in the order in which they are there.

    ``folders`` are searched for each file: the site-packages of ``python`` and checkouts. Each package is copied below
    ``work``, so that nothing is written where it lies.
    """
    places = asyncio.Semaphore(at_once)
    copies: dict[Path, Path] = {}

    async def outcome(file: LibraryFile) -> LibraryOutcome:
        folder = next((f for f in folders if (f / file.path).is_file()), None)
        if folder is None:
            return LibraryOutcome(
                file, way, seconds=0.0, trouble="the file is not there: install its package"
            )
        top = folder / Path(file.path).parts[0]
        if top not in copies:
            copies[top] = copy_package(top, work / str(len(copies)) / top.name).parent
        async with places:
            return await _profiled(file, way, copies[top], python, folders)

    for done in asyncio.as_completed([outcome(file) for file in chosen]):
        yield await done


def copy_package(top: Path, copy: Path) -> Path:
    """Copy the package ``top`` to ``copy``, with links to its compiled code."""

    def copy_or_link(source: str, target: str) -> None:
        if source.endswith(".so"):
            os.symlink(source, target)
        else:
            shutil.copy2(source, target)

    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(top, copy, ignore=ignored, copy_function=copy_or_link, ignore_dangling_symlinks=True)
    return copy


async def _profiled(
    file: LibraryFile, way: Way, root: Path, python: str, folders: Sequence[Path]
) -> LibraryOutcome:
    began = time.monotonic()
    trouble, path = "", root / file.path
    if way == "problem":
        code, _, errors = await run_accelopt(["problem", str(path)], python)
        trouble = last_line(errors) if code else ""
    elif way == "record":
        trouble = await _record(file, root, python, folders)
        if trouble:
            return LibraryOutcome(file, way, seconds=time.monotonic() - began, trouble=trouble)
    target = [] if file.set.startswith("nki") else ["--target", "h100"]
    code, printed, errors = await run_accelopt(["profile", str(path), *target, "--json"], python)
    seconds = time.monotonic() - began
    try:
        report: dict[str, Any] = json.loads(printed)
        kernels: list[dict[str, Any]] = report["kernels"]
    except (ValueError, KeyError):
        return LibraryOutcome(
            file, way, seconds=seconds, trouble=trouble or last_line(errors) or f"exit code {code}"
        )
    times = [k["latency"]["us"] for k in kernels if k["latency"]["us"] is not None]
    findings = [*(f for k in kernels for f in k["findings"]), *report["findings"]]
    wrong = [f["message"] for f in findings if f["severity"] == "error"]
    first = (wrong or [f["message"] for f in findings if not times] or [""])[0]
    statuses = sorted(
        {
            s
            for k in kernels
            if (s := k["correctness"]["status"]) == "failed" or k["latency"]["us"] is not None
        }
    )
    return LibraryOutcome(
        file,
        way,
        kernels=len(times),
        of=len(kernels),
        us=max(times, default=None),
        correctness=", ".join(statuses),
        seconds=seconds,
        trouble=trouble or first,
    )


async def _record(file: LibraryFile, root: Path, python: str, folders: Sequence[Path]) -> str:
    """Record the file's command beside the package's copy ``root``.

    Return why nothing was recorded, or "".
    """
    if not file.record:
        return "no test of its package and no program is known that launches its kernels"
    command = [str(_FOLDER.joinpath(part)) if part.startswith("usages/") else part for part in file.record]
    if command == list(file.record):
        checkout = next((f for f in folders if any((f / part).is_file() for part in command)), None)
        if checkout is None:
            return "the tests of its package are not there: give a checkout of its repository with --data"
        for name in file.beside:
            if (checkout / name).exists() and not (root / name).exists():
                (shutil.copytree if (checkout / name).is_dir() else shutil.copy)(checkout / name, root / name)
    options = ["--file", str(root / file.path), "--seconds", str(_RECORD_SECONDS)]
    code, _, errors = await run_accelopt(["record", *options, "--", *command], python, folder=root)
    return last_line(errors) if code else ""


def rows(outcomes: Sequence[LibraryOutcome]) -> list[GoalResult]:
    """Return the share of files with a number, by way and set."""
    table: list[GoalResult] = []
    for way, chosen in dict.fromkeys((o.way, o.file.set) for o in outcomes):
        group = [o for o in outcomes if (o.way, o.file.set) == (way, chosen)]
        good = sum(o.good for o in group)
        goal = _GOALS.get((way, chosen))
        seconds = sorted(o.seconds for o in group if o.kernels)
        detail = f"median {seconds[len(seconds) // 2]:.1f} s" if seconds else ""
        table.append(
            GoalResult(
                f"files of set {chosen!r} {'that pass' if chosen == 'nki-tests' else 'with a number'}, way {way!r}",
                "none set" if goal is None else f">= {100 * goal:.0f} %",
                good,
                f"of {len(group)}",
                None if goal is None else good >= goal * len(group),
                detail,
            )
        )
    return table


#: Seconds for one command; a person would not wait longer.
_SECONDS = 300.0
_GRACE_SECONDS = 30.0


async def run_accelopt(
    arguments: Sequence[str],
    python: str | None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[int, str, str]:
    """Return the exit code, output and errors of one command.

    ``python`` is the setting, ``environment`` is added to this process' own. It runs in ``folder``, and what it starts
    imports from there.
    """
    setting = {} if python is None else {"ACCELOPT_PYTHON": python}
    if folder is not None:
        setting["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "accelopt_lsp", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **setting, **(environment or {}), "NO_COLOR": "1"},
    )
    try:
        printed, errors = await asyncio.wait_for(child.communicate(), _SECONDS)
    except asyncio.TimeoutError:
        child.terminate()  # it ends what it started
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(child.wait(), _GRACE_SECONDS)
        if child.returncode is None:
            child.kill()
        return -1, "", f"no answer within {_SECONDS:g} s"
    return child.returncode or 0, printed.decode(errors="replace"), errors.decode(errors="replace")


def last_line(errors: str) -> str:
    """Return the last line of what a command wrote to standard error."""
    lines = errors.strip().splitlines()
    return lines[-1] if lines else ""
