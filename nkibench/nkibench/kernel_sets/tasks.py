"""Reads the kernel sets of other projects from their checkouts: each kernel with its problem."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

#: So many bytes of stored tensors go with a task: what a problem takes along (``problems.discovery``).
MOST_STORED = 32 << 20

#: Kernels of KernelBench's own runs are named like this.
_OF_A_RUN = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")


@dataclass(frozen=True)
class SetTask:
    """One task: ``files`` are the texts of the folder it runs in, ``kernel`` and ``problem`` two of their names. A task
    that cannot be run has a ``fault`` in one line instead; one without a ``kernel`` has nothing but its problem.
    ``stored`` are files of tensors by their names in that folder; ``solution`` is what FlashInfer-Bench holds of it,
    ``workload`` its first workload."""

    name: str
    group: str
    kernel: str = ""
    problem: str = ""
    files: dict[str, str] = field(default_factory=dict)
    fault: str = ""
    stored: dict[str, Path] = field(default_factory=dict)
    solution: dict[str, Any] = field(default_factory=dict)
    workload: dict[str, Any] | None = None


def kernelbench(data: Path, kernels: Path | None = None) -> Iterator[SetTask]:
    """Yield the tasks of a KernelBench checkout (``level1/19_ReLU.py``), each with the kernel that
    ``kernels`` has for it: a file of the same name or beginning in a folder of the level, or a file of one of
    KernelBench's runs, of which the first sample is taken. Without ``kernels`` the tasks have none.

    Raises:
        ValueError: the checkout has no tasks.
    """
    levels = sorted(p for p in [*data.glob("level*"), *data.glob("KernelBench/level*")] if p.is_dir())
    references = [file for level in levels for file in sorted(level.glob("*.py"), key=_number)]
    if not references:
        raise ValueError(f"{data} has no level*/*.py; give a checkout of KernelBench.")
    for file in references:
        level = file.parent.name
        if kernels is None:
            reference = _text(file)
            unread = "its reference is no text" if reference is None else ""
            texts = {"reference.py": reference or ""}
            yield SetTask(file.stem, level, problem="reference.py", files=texts, fault=unread)
            continue
        kernel = _kernel_of(kernels, level, file.stem)
        if kernel is None:
            yield SetTask(file.stem, level, fault=f"{kernels} has no kernel for it")
            continue
        both = {"kernel.py": _text(kernel), "reference.py": _text(file)}
        missing = [name for name, text in both.items() if text is None]
        if missing:
            yield SetTask(file.stem, level, fault=f"its {missing[0]} is no text")
        else:
            read = {name: text for name, text in both.items() if text is not None}
            yield SetTask(file.stem, level, kernel="kernel.py", problem="reference.py", files=read)


def _kernel_of(kernels: Path, level: str, stem: str) -> Path | None:
    same = [
        p
        for folder in (kernels / level, kernels)
        for p in (folder / f"{stem}.py", *sorted(folder.glob(f"{stem}_*.py")))
    ]
    file = next((p for p in same if p.is_file()), None)
    if file is not None:
        return file
    key = (re.sub(r"\D", "", level), stem.partition("_")[0])
    of_runs = [
        (int(m[3]), p)
        for p in kernels.glob("*.py")
        if (m := _OF_A_RUN.fullmatch(p.name)) and m.groups()[:2] == key
    ]
    return min(of_runs)[1] if of_runs else None


def _number(file: Path) -> tuple[int, str]:
    first = file.stem.partition("_")[0]
    return (int(first) if first.isdigit() else 0, file.stem)


def flashinfer(data: Path, workloads: int) -> Iterator[SetTask]:
    """Yield the Triton solutions of a FlashInfer-Bench data set, each with its definition and the first
    ``workloads`` workloads whose tensors are drawn or here.

    Raises:
        ValueError: the data set has no definitions.
    """
    definitions = {
        d["name"]: d
        for file in sorted(data.glob("definitions/**/*.json"))
        if (d := _object(file)) and "name" in d
    }
    if not definitions:
        raise ValueError(f"{data} has no definitions/**/*.json; give a FlashInfer-Bench data set.")
    for file in sorted(data.glob("solutions/**/*.json")):
        solution = _object(file)
        spec = solution.get("spec", {}) if solution else {}
        if solution and isinstance(spec, dict) and spec.get("language") in ("triton", "python"):
            yield _solution(data, solution, spec=spec, definitions=definitions, workloads=workloads)


def _solution(
    data: Path,
    solution: dict[str, Any],
    spec: dict[str, Any],
    definitions: dict[str, dict[str, Any]],
    workloads: int,
) -> SetTask:
    name, definition_name = str(solution.get("name", "")), str(solution.get("definition", ""))
    definition = definitions.get(definition_name)
    group = str((definition or {}).get("op_type", ""))
    entry = str(spec.get("entry_point", "")).partition("::")[0]
    sources = {
        str(s.get("path")): str(s.get("content")) for s in solution.get("sources", []) if isinstance(s, dict)
    }
    lines, stored = _drawable(data, definition_name, workloads)
    fault = ""
    if definition is None:
        fault = f"the data set has no definition {definition_name}"
    elif entry not in sources or not all(_stays_inside(path) for path in sources):
        fault = f"its sources have no usable file {entry}"
    elif not lines:
        fault = "none of its workloads can be drawn: their safetensors are not here, or too large together"
    if fault:
        return SetTask(name, group, fault=fault)
    files = {**sources, "definition.json": json.dumps(definition), "workloads.jsonl": "\n".join(lines) + "\n"}
    first = json.loads(lines[0])
    return SetTask(
        name, group, kernel=entry, problem="definition.json", files=files, stored=stored, solution=solution,
        workload=first.get("workload") or first,
    )  # fmt: skip


def _drawable(data: Path, definition: str, most: int) -> tuple[list[str], dict[str, Path]]:
    """Return the first workloads whose inputs are random, scalars, or in safetensors files of the set, and these files
    by the names that the workloads give them."""
    lines: list[str] = []
    stored: dict[str, Path] = {}
    for file in sorted(data.glob("workloads/**/*.jsonl")):
        if file.stem != definition:
            continue
        for line in (_text(file) or "").splitlines():
            try:
                read = json.loads(line)
                inputs = (read.get("workload") or read).get("inputs", {})
                names = [str(i.get("path")) for i in inputs.values() if i.get("type") == "safetensors"]
            except (ValueError, AttributeError):
                continue
            needed = {
                name: stored_file for name in names if (stored_file := _tensors(data, name)) is not None
            }
            together = {**stored, **needed}
            if (
                len(needed) < len(set(names))
                or sum(p.stat().st_size for p in together.values()) > MOST_STORED
            ):
                continue
            if len(lines) < most:
                lines.append(line)
                stored = together
    return lines, stored


def _tensors(data: Path, name: str) -> Path | None:
    """Return a file of tensors of the set. None for one outside of it, absent, or a pointer of Git LFS."""
    path = data / name
    if not _stays_inside(name) or not path.resolve().is_relative_to(data.resolve()) or not path.is_file():
        return None
    with path.open("rb") as file:
        return None if file.read(24).startswith(b"version https://git-lfs") else path


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path)
    return bool(path) and not parts.is_absolute() and ".." not in parts.parts


def _object(file: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _text(file: Path) -> str | None:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
