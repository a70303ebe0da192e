"""Reads the kernel sets of other projects from their checkouts: each kernel with its problem."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

#: Kernels of KernelBench's own runs are named like this.
_OF_A_RUN = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")


@dataclass(frozen=True)
class SetTask:
    """One task: ``files`` are the texts of the folder it runs in, ``kernel`` and ``problem`` two of their names. A task
    that cannot be run has a ``fault`` in one line instead; one without a ``kernel`` has nothing but its problem."""

    name: str
    group: str
    kernel: str = ""
    problem: str = ""
    files: dict[str, str] = field(default_factory=dict)
    fault: str = ""


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
        found = _kernel_of(kernels, level, file.stem)
        if found is None:
            yield SetTask(file.stem, level, fault=f"{kernels} has no kernel for it")
            continue
        both = {"kernel.py": _text(found), "reference.py": _text(file)}
        missing = [name for name, text in both.items() if text is None]
        if missing:
            yield SetTask(file.stem, level, fault=f"its {missing[0]} is no text")
        else:
            read = {name: text for name, text in both.items() if text is not None}
            yield SetTask(file.stem, level, "kernel.py", "reference.py", read)


def _kernel_of(kernels: Path, level: str, stem: str) -> Path | None:
    same = [
        p
        for folder in (kernels / level, kernels)
        for p in (folder / f"{stem}.py", *sorted(folder.glob(f"{stem}_*.py")))
    ]
    found = next((p for p in same if p.is_file()), None)
    if found is not None:
        return found
    wanted = (re.sub(r"\D", "", level), stem.partition("_")[0])
    of_runs = [
        (int(m[3]), p)
        for p in kernels.glob("*.py")
        if (m := _OF_A_RUN.fullmatch(p.name)) and m.groups()[:2] == wanted
    ]
    return min(of_runs)[1] if of_runs else None


def _number(file: Path) -> tuple[int, str]:
    first = file.stem.partition("_")[0]
    return (int(first) if first.isdigit() else 0, file.stem)


def flashinfer(data: Path, workloads: int) -> Iterator[SetTask]:
    """Yield the Triton solutions of a FlashInfer-Bench data set, each with its definition and the first
    ``workloads`` workloads that can be drawn without the set's tensors.

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
            yield _solution(data, solution, spec, definitions, workloads)


def _solution(
    data: Path,
    solution: dict[str, Any],
    spec: dict[str, Any],
    definitions: dict[str, dict[str, Any]],
    workloads: int,
) -> SetTask:
    name, wanted = str(solution.get("name", "")), str(solution.get("definition", ""))
    definition = definitions.get(wanted)
    group = str((definition or {}).get("op_type", ""))
    entry = str(spec.get("entry_point", "")).partition("::")[0]
    sources = {
        str(s.get("path")): str(s.get("content")) for s in solution.get("sources", []) if isinstance(s, dict)
    }
    lines = _drawable(data, wanted, workloads)
    fault = ""
    if definition is None:
        fault = f"the data set has no definition {wanted}"
    elif entry not in sources or not all(_stays_inside(path) for path in sources):
        fault = f"its sources have no usable file {entry}"
    elif not lines:
        fault = "none of its workloads can be drawn without the set's tensors"
    if fault:
        return SetTask(name, group, fault=fault)
    files = {**sources, "definition.json": json.dumps(definition), "workloads.jsonl": "\n".join(lines) + "\n"}
    return SetTask(name, group, entry, "definition.json", files)


def _drawable(data: Path, definition: str, most: int) -> list[str]:
    """Return the first workloads whose inputs are all random or scalars."""
    found: list[str] = []
    for file in sorted(data.glob("workloads/**/*.jsonl")):
        if file.stem != definition:
            continue
        for line in (_text(file) or "").splitlines():
            try:
                read = json.loads(line)
                inputs = (read.get("workload") or read).get("inputs", {})
                kept = [i for i in inputs.values() if i.get("type") == "safetensors"]
            except (ValueError, AttributeError):
                continue
            if not kept and len(found) < most:
                found.append(line)
    return found


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path)
    return bool(path) and not parts.is_absolute() and ".." not in parts.parts


def _object(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _text(file: Path) -> str | None:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
