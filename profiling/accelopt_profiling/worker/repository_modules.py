"""Find modules of a kernel file's repository that are on no import path.

A folder above a kernel file may be the one that its imports start from: nobody else's modules have those names, so it
is asked last. A module elsewhere in the repository is only named, since only a person knows whether it is meant.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
#: Levels that are climbed, and what looking for a module may take.
_HIGHEST, _SECONDS, _MOST_FOLDERS = 16, 1.0, 5000


def repository_of(file: Path) -> Path | None:
    """Return the highest folder around ``file`` that has a project's files, or the nearest one with ``.git``."""
    found: Path | None = None
    for folder in list(file.parents)[:_HIGHEST]:
        present = [mark for mark in _MARKS if (folder / mark).exists()]
        found = folder if present else found
        if ".git" in present:
            break
    return found


def find_in_repository(file: Path) -> None:
    """Let imports that nothing else finds be found in the folders between ``file`` and its repository."""
    root = repository_of(file)
    if root is not None and not any(isinstance(f, _AboveFinder) for f in sys.meta_path):
        sys.meta_path.append(_AboveFinder(file, root))


class _AboveFinder(MetaPathFinder):
    """Finds top-level modules in the folders above a file: a module, a package, or a folder that holds the file."""

    def __init__(self, file: Path, root: Path) -> None:
        self._file = file
        self._folders = [f for f in file.parents if f.is_relative_to(root)]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for folder in self._folders if path is None else ():
            spec = PathFinder.find_spec(fullname, [str(folder)])
            if spec is not None and (spec.origin or self._file.is_relative_to(folder / fullname)):
                return spec
        return None


def module_in_repository(file: Path, name: str) -> Path | None:
    """Return the file of a top-level module somewhere in the repository of ``file``, as a path from there; None where
    there is none, or looking takes long."""
    root, top = repository_of(file), name.split(".")[0]
    ends = time.monotonic() + _SECONDS
    for number, (folder, folders, files) in enumerate(os.walk(root) if root and top else ()):
        if number > _MOST_FOLDERS or time.monotonic() > ends:
            break
        folders[:] = sorted(f for f in folders if not f.startswith((".", "__")) and f != "site-packages")
        if f"{top}.py" in files:
            return Path(folder, f"{top}.py").relative_to(root or "/")
        if top in folders and Path(folder, top, "__init__.py").is_file():
            return Path(folder, top, "__init__.py").relative_to(root or "/")
    return None
