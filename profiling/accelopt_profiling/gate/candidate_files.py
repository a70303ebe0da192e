"""The files and names that a candidate's process gets: the problem's are kept from it, unless the original imports them
too.
"""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

from accelopt_profiling.gate.request import GateRequest
from accelopt_profiling.jobs import JobFiles, Runtime
from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.problems.discovery.imports import imported_names
from accelopt_profiling.source_text import syntax_of


def without_problem(request: GateRequest) -> JobFiles:
    """Return the candidate's source as its process gets it.

    The problem's files are left out unless the original kernel file imports them as well, and so are the folders of
    this machine, so that no path leads to the project.
    """
    hidden = _hidden_paths(request)
    files = {n: t for n, t in request.candidate.files.items() if n not in hidden}
    return JobFiles(request.candidate.kernel, files)


def unchanged_files(request: GateRequest) -> list[str]:
    """Return the candidate's files that the original has too, with the same text."""
    before = request.original.files
    return [
        n for n, t in request.candidate.files.items() if n != request.candidate.kernel and before.get(n) == t
    ]


def hidden_modules(request: GateRequest) -> list[str]:
    """Return module names under which the problem's files could be imported from the project's folders."""
    names: list[str] = []
    for path in _hidden_paths(request):
        pure = PurePosixPath(path)
        if pure.suffix == ".py":
            parts = pure.with_suffix("").parts
            names += [".".join(parts[n:]) for n in range(len(parts))]
    return list(dict.fromkeys(names))


def neutralised_names(request: GateRequest) -> list[str]:
    """Return the names of the kernel file itself that hold the answer, when the problem is written into it."""
    problem = request.problem
    if problem.path is not None and problem.path != request.candidate.kernel:
        return []
    return [n for n in layout_of(problem).answers if not _kernel_file_calls(request, n)]


def _hidden_paths(request: GateRequest) -> list[str]:
    problem = request.problem
    if layout_of(problem).launches:
        return []
    workloads = problem.options.get("workloads")
    stored = problem.options.get("stored")
    stored = list(stored.values()) if isinstance(stored, dict) else []
    paths = [
        p for p in (problem.path, workloads, *stored) if isinstance(p, str) and p != request.original.kernel
    ]
    imported = {name for name, _ in imported_names(request.original.files[request.original.kernel])}
    return [p for p in paths if PurePosixPath(p).stem not in {n.split(".")[-1] for n in imported}]


def _kernel_file_calls(request: GateRequest, name: str) -> bool:
    """Check whether the original's own functions use ``name`` (such as a model built from ``Model``)."""
    tree = syntax_of(request.original.files[request.original.kernel])
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name != name:
            used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            if name in used and not node.name.startswith(("test", "bench", "main", "get_", "reference")):
                return True
    return False


def runtime_of(request: GateRequest) -> Runtime:
    """Return the preloaded parent for the steps that run user code: "torch" for Triton and wherever a file
    imports torch."""
    if request.dialect == "triton" or layout_of(request.problem).torch:
        return "torch"
    texts = [*request.original.files.values(), *request.candidate.files.values()]
    uses_torch = any(name.split(".")[0] == "torch" for text in texts for name, _ in imported_names(text))
    return "torch" if uses_torch else "numpy"
