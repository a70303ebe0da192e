"""Name the files that may hold a kernel file's problem: by a comment, by the settings, by the layouts of data sets."""

from __future__ import annotations

import base64
import io
import json
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from accelopt_profiling.source_text import (
    UnreadableFileError,
    read_regular,
    read_text,
    resolve_links,
    source_lines,
)

_MAX_SIBLINGS = 500
_MAX_STORED_BYTES = 32 << 20
_DATA_SET_LEVELS = 5
_COMMENT = re.compile(r"#\s*accelopt:\s*(?P<settings>.*)$")
_SETTING = re.compile(r"(?P<key>\w+)\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>\S+))")


@dataclass(frozen=True)
class NamedProblem:
    """A problem file that a comment or the settings name, as ``spelling`` writes it; ``path`` is absolute.

    ``line`` (1-based) is the line of the comment in the kernel file, None for the settings.
    """

    path: Path
    entry: str | None
    line: int | None
    spelling: str


def named_in_comment(path: Path, text: str) -> NamedProblem | None:
    """Read the first comment ``# accelopt: problem=FILE [entry=NAME]``; FILE is relative to the file's folder."""
    if "accelopt:" not in text:
        return None
    for line, comment in _comments(text):
        matched = _COMMENT.match(comment)
        if not matched:
            continue
        settings = {m["key"]: m["quoted"] or m["bare"] or "" for m in _SETTING.finditer(matched["settings"])}
        if settings.get("problem"):
            spelling = settings["problem"]
            return NamedProblem(resolve_links(path.parent / spelling), settings.get("entry"), line, spelling)
    return None


def named_in_settings(
    path: Path, configured: Mapping[str, str] | str | None, project_root: Path | None
) -> NamedProblem | None:
    """Return the problem that the settings give this file.

    ``configured`` is one path for every file, or maps file patterns (relative to the project's root, ``*``
    also crosses folders) to paths; a full match of the path comes before patterns.
    """
    if not configured:
        return None
    base = project_root or path.parent
    if isinstance(configured, str):
        return NamedProblem(resolve_links(base / configured), None, None, configured)
    relative = path.relative_to(base).as_posix() if path.is_relative_to(base) else path.name
    for pattern in sorted(configured, key=lambda p: (p != relative, list(configured).index(p))):
        if relative == pattern or fnmatch(relative, pattern) or fnmatch(path.name, pattern):
            spelling = configured[pattern]
            return NamedProblem(resolve_links(base / spelling), None, None, spelling)
    return None


def _comments(text: str) -> list[tuple[int, str]]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return [(n, line[line.index("#") :]) for n, line in enumerate(source_lines(text), 1) if "#" in line]
    return [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]


def nkibench_reference(path: Path) -> Path | None:
    """Return the reference of a kernel in NKIBench's folders.

    ``summary.json`` names it, or it is ``../reference/<stem>_numpy_*.py``.
    """
    root = path.parent.parent
    try:
        data = json.loads(read_text(root / "summary.json"))
    except (UnreadableFileError, ValueError, RecursionError):
        data = {}
    for task in _implementations(data):
        reference = resolve_links(root / task["task"])
        if resolve_links(root / task["kernel"]) == path and reference.is_file():
            return reference
    stem = re.sub(r"_\d+$", "", path.stem)
    folder = root / "reference"
    if path.parent.name == "kernels" and folder.is_dir():
        matches = sorted(folder.glob(f"{stem}_numpy_*.py"))
        if matches:
            return matches[0].resolve()
    return None


def _implementations(data: object) -> list[dict[str, str]]:
    implementations: list[dict[str, str]] = []
    operators = data.values() if isinstance(data, dict) else []
    for operator in operators:
        cases = operator.get("cases") if isinstance(operator, dict) else None
        for case in cases.values() if isinstance(cases, dict) else []:
            for item in case.get("impls", []) if isinstance(case, dict) else []:
                if (
                    isinstance(item, dict)
                    and isinstance(item.get("task"), str)
                    and isinstance(item.get("kernel"), str)
                ):
                    implementations.append(item)
    return implementations


def kernelbench_candidates(path: Path) -> list[Path]:
    """List the files beside a ``ModelNew`` file that may hold its ``Model``, likeliest first.

    They are named like the kernel file without an ending (``19_ReLU_triton.py`` has ``19_ReLU.py``), or carry
    one of the usual names of a reference.
    """
    named = [path.parent / f"{name}.py" for name in ("reference", "model", "problem", "ref")]
    parts = re.split(r"[_\-.]", path.stem)
    shorter: list[Path] = []
    for file in sorted(path.parent.glob("*.py"))[:_MAX_SIBLINGS]:
        other = re.split(r"[_\-.]", file.stem)
        if file != path and len(other) < len(parts) and parts[: len(other)] == other:
            shorter.append(file)
    shorter.sort(key=lambda f: -len(f.stem))
    return [f for f in [*shorter, *named] if f.is_file() and f != path]


def flashinfer_candidates(path: Path) -> list[Path]:
    """List the JSON files beside a kernel file that may be its FlashInfer-Bench definition."""
    names = [path.stem, f"{path.stem}_definition", f"{path.stem}_problem", "definition"]
    return [path.parent / f"{n}.json" for n in names if (path.parent / f"{n}.json").is_file()]


def stored_inputs(workloads: Path, content: str) -> dict[str, tuple[Path, str]]:
    """Return the safetensors files that workloads name, by that name, each as its path and its bytes in base64.

    A name is relative to the data set, which is at or above the workloads' folder. Files that do not exist, pointers of
    Git LFS, and what goes beyond 32 MB together are left out.
    """
    names = dict.fromkeys(
        spec["path"]
        for line in content.split("\n")
        for spec in _stored_specs(line)
        if isinstance(spec.get("path"), str)
    )
    found: dict[str, tuple[Path, str]] = {}
    left = _MAX_STORED_BYTES
    for name in names:
        for folder in [workloads.parent, *workloads.parents][:_DATA_SET_LEVELS]:
            file = resolve_links(folder / name)
            if not file.is_relative_to(folder.resolve()) or not file.is_file():
                continue
            size = file.stat().st_size
            if 8 < size <= left and not (held := read_regular(file, left)).startswith(
                b"version https://git-lfs"
            ):
                found[name] = (file, base64.b64encode(held).decode("ascii"))
                left -= size
            break
    return found


def _stored_specs(line: str) -> list[dict[str, Any]]:
    try:
        data = json.loads(line) if "safetensors" in line else {}
    except (ValueError, RecursionError):
        return []
    data = data.get("workload") or data if isinstance(data, dict) else {}
    inputs = data.get("inputs") if isinstance(data, dict) else None
    specs = inputs.values() if isinstance(inputs, dict) else []
    return [s for s in specs if isinstance(s, dict) and s.get("type") == "safetensors"]


def flashinfer_workloads(definition: Path, name: str) -> Path | None:
    """Return a definition's workloads: ``<stem>.jsonl``, ``workloads.jsonl`` beside it, or by the data set's layout."""
    for file in (definition.with_suffix(".jsonl"), definition.parent / "workloads.jsonl"):
        if file.is_file():
            return file
    for parent in definition.parents:
        if parent.name == "definitions":
            folder = parent.parent / "workloads"
            matches = (
                sorted(folder.rglob(f"{name}.jsonl"))
                if folder.is_dir() and re.fullmatch(r"[\w.\-]+", name)
                else []
            )
            return matches[0] if matches else None
    return None
