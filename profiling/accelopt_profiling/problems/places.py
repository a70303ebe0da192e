"""Where the layouts of others keep the problem of a kernel file."""

from __future__ import annotations

import json
import re
from pathlib import Path

from accelopt_profiling.problems.reading import Unreadable, followed, read_text

_MAX_SIBLINGS = 500


def nkibench_reference(path: Path) -> Path | None:
    """The reference of a kernel in NKIBench's folders: by ``summary.json``, or
    ``../reference/<stem>_numpy_*.py``.
    """
    root = path.parent.parent
    try:
        data = json.loads(read_text(root / "summary.json"))
    except (Unreadable, ValueError, RecursionError):
        data = {}
    for task in _implementations(data):
        reference = followed(root / task["task"])
        if followed(root / task["kernel"]) == path and reference.is_file():
            return reference
    stem = re.sub(r"_\d+$", "", path.stem)
    folder = root / "reference"
    if path.parent.name == "kernels" and folder.is_dir():
        matches = sorted(folder.glob(f"{stem}_numpy_*.py"))
        if matches:
            return matches[0].resolve()
    return None


def _implementations(data: object) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
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
                    found.append(item)
    return found


def kernelbench_candidates(path: Path) -> list[Path]:
    """Files beside a ``ModelNew`` file that may hold its ``Model``, likeliest first.

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
    """JSON files beside a kernel file that may be its FlashInfer-Bench definition."""
    names = [path.stem, f"{path.stem}_definition", f"{path.stem}_problem", "definition"]
    return [path.parent / f"{n}.json" for n in names if (path.parent / f"{n}.json").is_file()]


def flashinfer_workloads(definition: Path, name: str) -> Path | None:
    """The workloads of a definition: ``<stem>.jsonl`` or ``workloads.jsonl`` beside it, or the data set's
    layout.
    """
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
