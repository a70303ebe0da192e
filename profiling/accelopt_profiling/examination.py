"""Examine a kernel file once: parse it, find its kernels and its problem; nothing is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from accelopt_profiling.kernel_file import KernelFile
from accelopt_profiling.kernels import Discovery, kernels_in
from accelopt_profiling.measurement import Finding
from accelopt_profiling.problems.discovery.find import find_problem
from accelopt_profiling.problems.discovery.imports import shadowing_files
from accelopt_profiling.problems.ref import ProblemLookup
from accelopt_profiling.source_text import ParsedPython, try_parse


def examine(
    path: Path,
    text: str,
    *,
    project_root: Path | None = None,
    problem: Mapping[str, str] | str | None = None,
) -> KernelFile:
    """Find the kernels and the problem of the file ``path`` whose (perhaps unsaved) content is ``text``.

    ``problem`` is the setting of that name (see ``find_problem``). The text is parsed once; files beside it are read
    where they may hold the problem. What is wrong becomes findings; nothing is raised.
    """
    parsed = try_parse(text)
    discovery = kernels_in(parsed)
    lookup = find_problem(path, parsed, discovery, project_root=project_root, configured=problem)
    discovery = replace(
        discovery, findings=(*discovery.findings, *_shadowed(path, parsed, discovery, lookup))
    )
    return KernelFile(
        path,
        text,
        discovery=discovery,
        problem=lookup,
        imports=parsed.imports,
        project_root=project_root,
        configured=problem,
    )


def rewritten(file: KernelFile, text: str) -> KernelFile:
    """Return ``file`` with another text, examined in the same way."""
    if text == file.text:
        return file
    return examine(file.path, text, project_root=file.project_root, problem=file.configured)


def _shadowed(
    path: Path, parsed: ParsedPython, discovery: Discovery, lookup: ProblemLookup
) -> Iterator[Finding]:
    """Yield a finding for each file beside the kernel file, or its problem, that has the name of a package that this
    imports."""
    importing = {path: parsed.imports} if discovery.kernels else {}
    importing |= {(lookup.root or path.parent) / name: names for name, names in lookup.imports.items()}
    shadowing = {f.parent / name: f for f, names in importing.items() for name in shadowing_files(f, names)}
    for file, importer in shadowing.items():
        name = file.parent.name if file.name == "__init__.py" else file.stem
        message = (
            f"{file} has the name of a package: `import {name}` in {importer.name} takes the package here, and "
            "the file where that is run as a script. Rename the file."
        )
        yield Finding("shadowed-package", discovery.kernels[0].line, "warning", message)
