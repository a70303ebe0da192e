"""A kernel file as its syntax tells it: its kernels, its problem, and the files that a job for it needs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.kernels import Discovery, Kernel
from accelopt_profiling.measurement import Finding
from accelopt_profiling.problems.discovery.imports import imported_names, project_imports
from accelopt_profiling.problems.ref import ProblemLookup
from accelopt_profiling.source_text import resolve_links


@dataclass(frozen=True)
class KernelFile:
    """A kernel file with the content ``text`` (perhaps unsaved), and what its syntax tells.

    Plain data: ``to_plain`` and ``from_plain`` carry it between processes, so that a text is examined once for all who
    ask about it. ``imports`` are those of ``text`` (see ``ParsedPython.imports``). Its problem was looked for with
    ``project_root`` and the setting ``configured`` (``examination.examine``).
    """

    path: Path
    text: str
    discovery: Discovery
    problem: ProblemLookup
    imports: list[tuple[str, int]] = field(default_factory=list)
    project_root: Path | None = None
    configured: Mapping[str, str] | str | None = None

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels that host code launches."""
        return [k for k in self.discovery.kernels if not k.device_function]

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with the text or with its problem."""
        return [*self.discovery.findings, *self.problem.findings]

    @property
    def content_hash(self) -> str:
        """The first 16 hex digits of the text's SHA-256."""
        return hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()[:16]

    @property
    def root(self) -> Path:
        """The folder that the paths of a job for this file are relative to."""
        return (self.problem.root or self.path.parent).resolve()

    @property
    def imports_by_name(self) -> dict[str, list[tuple[str, int]]]:
        """What each file of a job for this file imports, the problem's and its own."""
        return {**self.problem.imports, self.path.resolve().relative_to(self.root).as_posix(): self.imports}

    def kernel(self, name: str) -> Kernel | None:
        """Return the kernel ``name`` that host code launches, or None."""
        return next((k for k in self.kernels if k.name == name), None)

    def source(self, *, ship_imports: bool, text: str | None = None) -> JobFiles:
        """Return the files of a job for this file, or for a rewrite ``text`` in its place with the same problem.

        With ``ship_imports`` the project's own modules that the files import travel too (a host elsewhere); without,
        the job gets the folders on this machine to import them from: the file's own, the project's root and its
        ``src``. A member of a package is imported as that (see ``package_members``); elsewhere relative imports find
        what they name among the job's files only, so those always travel.
        """
        path, root = self.path.resolve(), self.root
        kernel = path.relative_to(root).as_posix()
        imports = (
            self.imports_by_name if text is None else {**self.problem.imports, kernel: imported_names(text)}
        )
        beside = {n: t for n, t in self.problem.files.items() if resolve_links(root / n).is_relative_to(root)}
        files = {kernel: self.text if text is None else text, **beside}
        folders = [f for f in dict.fromkeys([path.parent, root, root / "src"]) if f.is_dir()]
        relative = any(level for names in imports.values() for _, level in names)
        if ship_imports or (relative and not (path.parent / "__init__.py").is_file()):
            imports_by_path = {root / name: names for name, names in imports.items()}
            shipped = project_imports({root / n: t for n, t in files.items()}, folders, root, imports_by_path)
            files |= {p.relative_to(root).as_posix(): content for p, content in shipped.items()}
        return JobFiles(kernel, files, [] if ship_imports else [str(f) for f in folders], str(path))
