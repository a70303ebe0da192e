"""What a layout gets to look for a kernel file's problem, and the lookups that it answers with."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.measurement import Finding
from accelopt_profiling.problems.discovery.imports import Imports
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef
from accelopt_profiling.source_text import ParsedPython, UnreadableFileError, read_text, try_parse


@dataclass(frozen=True)
class ProblemFile:
    """A file that holds a problem: one that is named, or lies where a layout looks for it.

    ``origin`` says in words how it was found, ``entry`` is the entry point that was named with it, ``line`` the line of
    the kernel file that names it, as ``spelling``. Once it is read, ``text`` is its content: as ``source`` where it is
    Python, as ``data`` where it is JSON.
    """

    path: Path
    origin: str
    entry: str | None = None
    line: int | None = None
    spelling: str = ""
    text: str = ""
    source: ParsedPython | None = None
    data: Any = None

    def read(self) -> ProblemFile:
        """Return the file with its content. Raises UnreadableFileError."""
        text, source, data = read_text(self.path), None, None
        if self.path.suffix == ".py":
            source = try_parse(text)
        elif self.path.suffix == ".json":
            with suppress(ValueError, RecursionError):
                data = json.loads(text)
        return replace(self, text=text, source=source, data=data)


def readable(files: Iterable[ProblemFile]) -> Iterator[ProblemFile]:
    """Yield those of the files that can be read, with their content."""
    for file in files:
        try:
            content = file.read()
        except UnreadableFileError:
            continue
        yield content


class ProblemSearch:
    """A search for the problem of the kernel file ``file``, whose text is ``source``.

    ``names`` are those at its top level, ``line`` is that of its first kernel. ``project_root`` is None for a file
    outside the project.
    """

    def __init__(
        self,
        file: KernelSource,
        source: ParsedPython,
        project_root: Path | None,
        names: frozenset[str],
    ) -> None:
        self.path, self.text, self.file, self.source = file.path.resolve(), file.text, file, source
        self.project_root, self.names = project_root, names
        self.line = file.kernels[0].line if file.kernels else 1

    def fault(self, code: str, message: str, line: int | None = None) -> ProblemLookup:
        """Return the lookup of a problem that cannot be used, and why."""
        finding = Finding(code, line or self.line, "error", message)
        return ProblemLookup(None, findings=[finding], root=self.project_root or self.path.parent)

    def lookup(
        self,
        kind: str,
        file: Path | None,
        origin: str,
        text: str = "",
        *,
        entry: str | None = None,
        also: Mapping[Path, str] | None = None,
        options: Mapping[str, Any] | None = None,
        imports: Imports | None = None,
        above: Path | None = None,
    ) -> ProblemLookup:
        """Return the problem of ``kind`` in ``file`` with the content ``text``, None for the kernel file itself.

        ``also`` are further files that a job needs, ``imports`` what the file imports, ``above`` a folder that paths
        have to start at or above. Paths in ``options`` become relative to where they do start.
        """
        also = also or {}
        texts = {**({file: text} if file else {}), **also}
        root = self.root(list(texts), above)
        if root is None:
            return self.fault(
                "problem-invalid", f"The problem {file} lies outside the project; move it into it."
            )
        files = {p.relative_to(root).as_posix(): content for p, content in texts.items()}
        own = text if file else self.file.rest_hash  # editing a kernel does not change a problem beside it
        digest = hashlib.sha256("\0".join([kind, own, *also.values()]).encode()).hexdigest()[:16]
        path = file.relative_to(root).as_posix() if file else None
        ref = ProblemRef(
            kind,
            path,
            entry=entry,
            origin=origin,
            content_hash=digest,
            options=_relative(options or {}, root),
        )
        return ProblemLookup(ref, files, root=root, imports={path: imports} if path and imports else {})

    def root(self, files: list[Path], above: Path | None = None) -> Path | None:
        """Return the folder that paths of the job are relative to, ``above`` or around it where that is given; None
        when a file lies outside the project."""
        if self.project_root:
            return self.project_root if all(f.is_relative_to(self.project_root) for f in files) else None
        around = _imported_from(self.path, self.source)
        return Path(os.path.commonpath([around, *([above] if above else []), *(f.parent for f in files)]))


def _relative(value: Any, root: Path) -> Any:
    if isinstance(value, Mapping):
        return {key: _relative(inner, root) for key, inner in value.items()}
    return value.relative_to(root).as_posix() if isinstance(value, Path) else value


def _imported_from(path: Path, source: ParsedPython) -> Path:
    """Return the folder that ``path`` imports its own package from: above the outermost package around it where the
    file imports that, relatively or by its name; else the file's own folder.
    """
    levels = min(max((level for _, level in source.imports), default=0), len(path.parents))
    climbs_to = path.parents[max(levels, 1) - 1]
    above = next(f for f in (climbs_to, *climbs_to.parents) if not (f / "__init__.py").is_file())
    package = path.relative_to(above).parts[0]
    imports_itself = any(not level and name.split(".")[0] == package for name, level in source.imports)
    return above if levels or imports_itself else path.parent
