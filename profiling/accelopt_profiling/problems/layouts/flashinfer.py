"""FlashInfer-Bench's layout: a definition in JSON with its workloads beside the kernel file."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch, readable
from accelopt_profiling.problems.layout import SCALE, ProblemLayout
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef
from accelopt_profiling.source_text import UnreadableFileError, read_regular, read_text, resolve_links

if TYPE_CHECKING:
    from accelopt_profiling.problems.problem import Problem
    from accelopt_profiling.step_context import StepContext

KEYS = ("name", "axes", "inputs", "outputs", "reference")
_MAX_STORED_BYTES = 32 << 20
_DATA_SET_LEVELS = 5


def _find(search: ProblemSearch) -> ProblemLookup | None:
    for file in readable(flashinfer_candidates(search.path)):
        if lookup := _read(search, file):
            return lookup
    return None


def _read(search: ProblemSearch, file: ProblemFile) -> ProblemLookup | None:
    if not isinstance(file.data, dict) or not file.data.keys() >= set(KEYS):
        return None
    workloads = flashinfer_workloads(file.path, str(file.data["name"]))
    if workloads is None:
        beside = f"put {file.path.stem}.jsonl beside it, one workload a line"
        message = f"The definition {file.path.name} has no workloads; {beside}."
        return search.fault("problem-missing", message, file.line)
    try:
        content = read_text(workloads)
    except UnreadableFileError as error:
        return search.fault(error.code, f"The workloads {workloads.name} {error.why}.", file.line)
    stored = stored_inputs(workloads, content)
    options: dict[str, Any] = {"workloads": workloads}
    if stored:
        options["stored"] = {name: path for name, (path, _) in stored.items()}
    return search.lookup(
        "flashinfer", file.path, file.origin, file.text, entry=file.entry,
        also={workloads: content, **dict(stored.values())}, options=options,
    )  # fmt: skip


def flashinfer_candidates(path: Path) -> list[ProblemFile]:
    """List the JSON files beside a kernel file that may be its FlashInfer-Bench definition."""
    names = [
        f"{n}.json" for n in (path.stem, f"{path.stem}_definition", f"{path.stem}_problem", "definition")
    ]
    return [ProblemFile(path.with_name(n), f"FlashInfer-Bench definition {n}") for n in names]


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
    files: dict[str, tuple[Path, str]] = {}
    budget = _MAX_STORED_BYTES
    for name in names:
        for folder in [workloads.parent, *workloads.parents][:_DATA_SET_LEVELS]:
            file = resolve_links(folder / name)
            if not file.is_relative_to(folder.resolve()) or not file.is_file():
                continue
            size = file.stat().st_size
            if 8 < size <= budget and not (held := read_regular(file, budget)).startswith(
                b"version https://git-lfs"
            ):
                files[name] = (file, base64.b64encode(held).decode("ascii"))
                budget -= size
            break
    return files


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


def _load(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    from accelopt_profiling.problems.loading.flashinfer import load_flashinfer_problem

    return load_flashinfer_problem(context, ref)


_ABOUT = """\
A definition `<name>.json`, `<name>_definition.json` or `definition.json` beside the kernel file, with workloads in
`<name>.jsonl`, `workloads.jsonl` or the data set's `workloads/` folder. Outputs are returned, or passed in as
arguments after the inputs. Inputs in safetensors files are read (at most 32 MB together; paths relative to the data
set); workloads whose files are missing or larger are skipped."""

_DEFINITION = """{
  "name": "scale",
  "axes": {"n": {"type": "var"}, "m": {"type": "const", "value": 64}},
  "inputs": {"x": {"shape": ["n", "m"], "dtype": "float32"}},
  "outputs": {"y": {"shape": ["n", "m"], "dtype": "float32"}},
  "reference": "def run(x):\\n    return 2 * x\\n"
}
"""
_WORKLOADS = """{"uuid": "a", "axes": {"n": 16}, "inputs": {"x": {"type": "random"}}}
"""

LAYOUT = ProblemLayout(
    "flashinfer", "FlashInfer-Bench", load=_load, find=_find, read=_read,
    about=_ABOUT, example={"k.py": SCALE, "definition.json": _DEFINITION, "workloads.jsonl": _WORKLOADS},
    keys=KEYS, torch=True,
)  # fmt: skip
