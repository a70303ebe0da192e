"""GPU MODE's layout: ``custom_kernel`` of a submission, and the task around it.

The task is read by text only: ``task.yml``, ``reference.py`` and what they name. A task that has only
``check_implementation`` tells nobody what the right result is: then the original's results are compared with. The
tolerance is that of the dtypes; the one inside ``check_implementation`` cannot be read.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch
from accelopt_profiling.problems.layout import SCALE, ProblemLayout
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef
from accelopt_profiling.source_text import UnreadableFileError, read_text, resolve_links

if TYPE_CHECKING:
    from accelopt_profiling.problems.problem import Problem
    from accelopt_profiling.step_context import StepContext

ENTRY = "custom_kernel"
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
                return _task(folder, read_text(folder / "task.yml"))
            except UnreadableFileError as error:
                return GpuModeTask(folder, fault=f"{error.why}")
    return None


def _task(folder: Path, text: str) -> GpuModeTask:
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
    """Return the file that a task names.

    Tasks share files with others of their set. Raises UnreadableFileError.
    """
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


def task_files(search: ProblemSearch) -> dict[Path, str]:
    """Return the files that a submission imports, as if they lay beside it; none of any other kernel file."""
    task = gpumode_task(search.path) if ENTRY in search.names else None
    return {search.path.with_name(name): content for name, content in task.files.items()} if task else {}


def _find(search: ProblemSearch) -> ProblemLookup | None:
    task = gpumode_task(search.path) if ENTRY in search.names else None
    return _lookup(search, task, f"GPU MODE task {task.folder.name}") if task else None


def _read(search: ProblemSearch, file: ProblemFile) -> ProblemLookup | None:
    if file.path.name != "task.yml" or not file.path.is_file():
        return None
    return _lookup(search, gpumode_task(file.path), file.origin)


def _lookup(search: ProblemSearch, task: GpuModeTask | None, origin: str) -> ProblemLookup:
    """Return the lookup of a task, whose files are put beside the submission, where it imports them from."""
    if task is None:
        return search.fault("problem-invalid", "Beside task.yml there is no reference.py.")
    if task.fault:
        message = f"The task in {task.folder.name} cannot be used: {task.fault}."
        return search.fault("problem-invalid", message)
    text = task.files["reference.py"]
    options: dict[str, Any] = {"cases": task.cases}
    if "def ref_kernel" not in text:
        options["unreferenced"] = True
    reference = search.path.with_name("reference.py")
    beside = {search.path.with_name(name): content for name, content in task.files.items()}
    others = {file: content for file, content in beside.items() if file != reference}
    return search.lookup("gpumode", reference, origin, text, also=others, options=options)


def _load(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    from accelopt_profiling.problems.call import listed, seed_everything
    from accelopt_profiling.problems.loading.python_problem import compare_with_original
    from accelopt_profiling.problems.problem import Call, Problem, ProblemError
    from accelopt_profiling.worker.usercode import load_module

    file, cases = str(ref.path), ref.options["cases"]
    module = load_module(context, file)
    if not callable(getattr(module, "generate_input", None)):
        message = f"{file} has no function `generate_input` (GPU MODE's layout); add one."
        raise ProblemError("problem-invalid", message, file)

    def inputs(seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        case = dict(cases[int((shape or {}).get("case", 0))])
        if "seed" in inspect.signature(module.generate_input).parameters:
            case["seed"] = (int(case.get("seed", 0)) + seed) % (1 << 31)
        seed_everything(seed)
        return [module.generate_input(**case)]

    call = Call(ref.entry or ENTRY)
    shapes = [{"case": n} for n in range(1, len(cases))]
    problem = Problem(inputs, lambda inputs: (call, inputs), shapes=shapes, file=file)
    if not callable(getattr(module, "ref_kernel", None)):
        return compare_with_original(problem, context, kernel_module)
    problem.reference = lambda inputs: listed(module.ref_kernel(inputs[0]))
    return problem


_ABOUT = """\
`custom_kernel` in the kernel file, and `task.yml` with `reference.py` in its folder or at most three above it. The
files that `task.yml` lists are put beside the submission. The first benchmark is the main case, the other benchmarks
and tests are further ones. `generate_input` gives the inputs, `ref_kernel` the expected outputs. A task that has
`check_implementation` only has no reference here: its results are not checked, and a rewrite is compared with the
original. `--problem task.yml` names a task."""

_ENTRY = """

custom_kernel = scale
"""
_TASK_FILE = """lang: "py"
benchmarks:
  - {"size": 1024, "seed": 1}
"""
_REFERENCE = """import torch


def generate_input(size, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator).cuda()


def ref_kernel(data):
    return 2 * data
"""

LAYOUT = ProblemLayout(
    "gpumode", "GPU MODE", load=_load, find=_find, read=_read,
    about=_ABOUT, example={"k.py": SCALE + _ENTRY, "task.yml": _TASK_FILE, "reference.py": _REFERENCE},
)  # fmt: skip
