"""Find the project's files that a Python file imports, by syntax: a job on another machine needs them too."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.source_text import (
    COMPUTED_IMPORT,
    UnreadableFileError,
    read_text,
    resolve_links,
    try_parse,
)

MAX_FILES = 500
MAX_BYTES = 8 << 20
#: Folders whose entries are packages of different projects.
_INSTALLED = ("site-packages", "dist-packages")

#: What is always a package: no file of a project stands in for the standard library, the toolchains, and what those and
#: the worker import on their way, whatever lies beside a kernel (a temporary folder, a home).
ALWAYS_PACKAGES = sys.stdlib_module_names | {
    "nki", "neuronxcc", "torch_neuronx", "torch_xla", "libneuronxla", "triton", "torch", "numpy", "ml_dtypes",
    "filelock", "fsspec", "jinja2", "networkx", "packaging", "setuptools", "sympy", "typing_extensions",
    "accelopt_profiling",
}  # fmt: skip

#: Dotted names that a file may import, each with the level of a relative import (0 when absolute).
Imports = list[tuple[str, int]]


def project_imports(
    texts: Mapping[Path, str],
    roots: list[Path],
    inside: Path,
    imports_by_path: Mapping[Path, Imports] | None = None,
) -> dict[Path, str]:
    """Return the files below ``inside`` that ``texts`` import, directly or through one another, without ``texts``
    themselves. Where ``inside`` is a folder of installed packages, those of the texts' own packages alone.

    Where one of them imports a module by a computed name, every module of its package comes too, after the others.

    ``roots`` are the folders on the import path, in order; ``imports_by_path`` holds the imports of texts that were
    parsed before. At most MAX_FILES files of MAX_BYTES together are read; files that cannot be read or do not parse
    are left out (importing them will say so where the job runs).
    """
    insides = (
        [inside]
        if inside.name not in _INSTALLED
        else [inside / p.relative_to(inside).parts[0] for p in texts if p.is_relative_to(inside)]
    )
    shipped: dict[Path, str] = {}
    waiting = [
        (p, imported_names(t) if p not in (imports_by_path or {}) else (imports_by_path or {})[p])
        for p, t in texts.items()
    ]
    size = 0
    computed: dict[Path, None] = {}
    while waiting or computed:
        if waiting:
            path, imports = waiting.pop()
            if (COMPUTED_IMPORT, 0) in imports and (path.parent / "__init__.py").is_file():
                computed[_package_root(path)] = None
            targets = [t for name, level in imports for t in _resolve(name, level, path, roots)]
        else:
            targets = _modules_of(computed.popitem()[0])
        for target in targets:
            if target in shipped or target in texts or not any(_is_own(target, f) for f in insides):
                continue
            try:
                content = read_text(target)
                changed = target.stat().st_mtime_ns
            except (OSError, UnreadableFileError):
                continue
            size += len(content)
            if size > MAX_BYTES or len(shipped) == MAX_FILES:
                return shipped
            shipped[target] = content
            waiting.append((target, _imports_of(target, changed, len(content))))
    return shipped


def _package_root(path: Path) -> Path:
    """Return the folder of the outermost package that the file belongs to."""
    folder = path.parent
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _modules_of(package: Path) -> list[Path]:
    """Return all modules of a package but problems, which hold answers."""
    return sorted(p for p in package.rglob("*.py") if not p.stem.endswith("_problem"))


def _is_own(target: Path, inside: Path) -> bool:
    """Return whether a file and what it links to are Python files below ``inside``, none of them hidden."""
    place = resolve_links(target)
    if not target.is_relative_to(inside) or not place.is_relative_to(resolve_links(inside)):
        return False
    hidden = any(part.startswith(".") for part in place.relative_to(resolve_links(inside)).parts)
    return place.suffix == ".py" and not hidden


@lru_cache(maxsize=4096)
def _imports_of(path: Path, changed: int, size: int) -> Imports:
    """Return what the file imports, parsed once for each time ``changed`` and ``size`` that it has."""
    try:
        return imported_names(read_text(path))
    except UnreadableFileError:
        return []


def imported_names(text: str) -> Imports:
    """Return what a Python text imports; nothing where it does not parse."""
    return try_parse(text).imports


def _resolve(name: str, level: int, importer: Path, roots: list[Path]) -> list[Path]:
    """Return the module's file and the ``__init__.py`` of each package on the way, where they exist."""
    if level:
        base = importer.parent
        for _ in range(level - 1):
            base = base.parent
        starts = [base]
        own = [base / "__init__.py"] if (base / "__init__.py").is_file() else []
    else:
        starts, own = roots, []
    parts = [p for p in name.split(".") if p]
    if not level and parts and parts[0] in ALWAYS_PACKAGES:
        return []
    for start in starts:
        files: list[Path] = []
        folder = start
        for index, part in enumerate(parts):
            package, module = folder / part / "__init__.py", folder / f"{part}.py"
            if package.is_file():
                files.append(package)
                folder = folder / part
            elif module.is_file():
                files.append(module)
                break
            elif (folder / part).is_dir() and index + 1 < len(parts):
                folder = folder / part
            else:
                break
        if files:
            return [*own, *files]
    return own


def shadowing_files(path: Path, imports: Imports) -> list[str]:
    """Return the names of files beside ``path`` that have the name of a package that it imports. A run as a script
    would take them; in a folder that is a package nothing does."""
    if os.path.isfile(path.with_name("__init__.py")):
        return []
    names = dict.fromkeys(name.split(".")[0] for name, level in imports if not level)
    beside = [f"{name}{end}" for name in names if name in ALWAYS_PACKAGES for end in (".py", "/__init__.py")]
    return [file for file in beside if os.path.isfile(path.parent / file) and path.parent / file != path]


def with_imports(source: JobFiles, imports_by_name: Mapping[str, Imports] | None = None) -> JobFiles:
    """Return the source with the project's own modules that its files import, copied from this machine.

    ``imports_by_name`` are those of files that were parsed before."""
    root = _root_of(source)
    if root is None:
        return source
    folders = [Path(p) for p in source.import_paths]
    texts = {root / n: t for n, t in source.files.items()}
    imported = project_imports(
        texts, folders, root, {root / n: names for n, names in (imports_by_name or {}).items()}
    )
    shipped = {p.relative_to(root).as_posix(): t for p, t in imported.items()}
    return replace(source, files={**shipped, **source.files})


def _root_of(source: JobFiles) -> Path | None:
    """Return the folder that the source's paths are relative to, where it lies on this machine."""
    parts = len(PurePosixPath(source.kernel).parts)
    if not source.import_paths or not source.name or len(Path(source.name).parts) <= parts:
        return None
    return Path(source.name).parents[parts - 1]
