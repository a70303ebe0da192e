"""Find a GPU MODE task around a submission: ``task.yml``, ``reference.py`` and what they name, by text only."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_profiling.source_text import UnreadableFileError, read_text, resolve_links

#: A submission may lie so many folders below its task (``solutions/correct/submission.py``).
_LEVELS = 3
_ITEM = re.compile(r"^\s*-\s*(\{.*\})\s*(?:#.*)?$")
_BARE = re.compile(r"([{,]\s*)([A-Za-z_]\w*)\s*:")


@dataclass(frozen=True)
class GpuModeTask:
    """``files`` are the texts that a submission is run with, by the name they are imported by; ``cases`` the arguments
    of ``generate_input``, the benchmarks first. ``folder`` holds ``task.yml``.
    """

    folder: Path
    files: dict[str, str] = field(default_factory=dict)
    cases: list[dict[str, Any]] = field(default_factory=list)
    fault: str = ""


def gpumode_task(path: Path) -> GpuModeTask | None:
    """Return the task of the submission ``path``, None where there is no ``task.yml`` with a reference at or above it.

    ``fault`` says what keeps it from being used.
    """
    for folder in [path.parent, *path.parents][: _LEVELS + 1]:
        if (folder / "task.yml").is_file() and (folder / "reference.py").is_file():
            try:
                return _read(folder, read_text(folder / "task.yml"))
            except UnreadableFileError as error:
                return GpuModeTask(folder, fault=f"{error.why}")
    return None


def _read(folder: Path, text: str) -> GpuModeTask:
    """Read a task. Raises UnreadableFileError: a file that it names cannot be read."""
    sections = flow_lists(text)
    files = {"reference.py": read_text(folder / "reference.py")}
    for item in sections.get("files", []):
        name, source = str(item.get("name", "")), str(item.get("source", ""))
        if name.endswith(".py") and source.endswith(".py") and name not in ("eval.py", "reference.py"):
            files[Path(name).name] = read_text(_named(folder, source))
    cases = [*sections.get("benchmarks", []), *sections.get("tests", [])]
    if not cases:
        return GpuModeTask(
            folder, files, fault="task.yml lists neither `benchmarks` nor `tests` as {...} items"
        )
    return GpuModeTask(folder, files, cases)


def _named(folder: Path, source: str) -> Path:
    """Return the file that a task names; tasks share files with others of their set. Raises UnreadableFileError."""
    place = resolve_links(folder / source)
    if place.suffix != ".py" or not place.is_relative_to(resolve_links(folder).parent.parent):
        raise UnreadableFileError(
            "problem-invalid", f"names {source}, which is no Python file of its set of tasks"
        )
    return place


def flow_lists(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return the top-level lists of a YAML text whose items are flow mappings on one line each; nothing else of YAML is
    read.
    """
    sections: dict[str, list[dict[str, Any]]] = {}
    name = ""
    for line in text.splitlines():
        if heading := re.match(r"^(\w+):\s*(?:#.*)?$", line):
            name = heading[1]
        elif line[:1].strip() and not line.startswith(("-", "#")):
            name = ""
        elif (item := _ITEM.match(line)) and name and (mapping := _mapping(item[1])) is not None:
            sections.setdefault(name, []).append(mapping)
    return sections


def _mapping(text: str) -> dict[str, Any] | None:
    for attempt in (text, _BARE.sub(r'\1"\2":', text), _BARE.sub(r'\1"\2":', text).replace("'", '"')):
        try:
            value = json.loads(attempt)
        except ValueError:
            continue
        return value if isinstance(value, dict) else None
    return None
