"""Examine a kernel file once: parse it, find its kernels and its problem; nothing is executed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from accelopt_profiling.kernel_file import KernelFile
from accelopt_profiling.kernels import kernels_in
from accelopt_profiling.problems.discovery.find import find_problem
from accelopt_profiling.source_text import try_parse


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
    return KernelFile(path, text, discovery, lookup, parsed.imports)
