"""Examine a kernel file once: parse it, find its kernels and its problem; nothing is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from accelopt_profiling.kernels import KernelSource, kernels_in
from accelopt_profiling.measurement import Finding
from accelopt_profiling.problems.discovery.find import find_problem
from accelopt_profiling.problems.discovery.imports import shadowing_files
from accelopt_profiling.source_text import try_parse


def examine(
    path: Path,
    text: str,
    *,
    project_root: Path | None = None,
    problem: Mapping[str, str] | str | None = None,
) -> KernelSource:
    """Find the kernels and the problem of the file ``path`` whose (perhaps unsaved) content is ``text``.

    ``problem`` is the setting of that name (see ``find_problem``). The text is parsed once; files beside it are read
    where they may hold the problem. What is wrong becomes findings; nothing is raised.
    """
    parsed = try_parse(text)
    file = replace(kernels_in(parsed), path=path, project_root=project_root, configured=problem)
    file = replace(file, problem=find_problem(file, parsed))
    return replace(file, text_findings=(*file.text_findings, *_shadowed(file)))


def rewritten(file: KernelSource, text: str) -> KernelSource:
    """Return ``file`` with another text, examined in the same way."""
    if text == file.text:
        return file
    return examine(file.path, text, project_root=file.project_root, problem=file.configured)


def _shadowed(file: KernelSource) -> Iterator[Finding]:
    """Yield a finding for each file that shadows a package.

    It stands beside the kernel file, or its problem, and has the name of a package that this imports.
    """
    importing = {file.path: file.imports} if file.kernels else {}
    beside = file.problem.root or file.path.parent
    importing |= {beside / name: names for name, names in file.problem.imports.items()}
    shadowing = {f.parent / name: f for f, names in importing.items() for name in shadowing_files(f, names)}
    for module, importer in shadowing.items():
        name = module.parent.name if module.name == "__init__.py" else module.stem
        message = (
            f"{module} has the name of a package: `import {name}` in {importer.name} takes the package here, and "
            "the file where that is run as a script. Rename the file."
        )
        yield Finding("shadowed-package", file.kernels[0].line, "warning", message)
