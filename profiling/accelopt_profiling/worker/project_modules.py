"""Find the modules of a kernel file's project, in the order in which its own Python would.

The folder of a script comes before the packages. A folder above a kernel file may be the one that its imports start
from: nobody else's modules have those names, so it is asked last. A module elsewhere in the repository is only named,
since only a person knows whether it is meant.
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

from accelopt_profiling.problems.discovery.imports import ALWAYS_PACKAGES

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
#: Levels that are climbed, and what looking for a module may take.
_HIGHEST, _SECONDS, _MOST_FOLDERS = 16, 1.0, 5000


def repository_of(file: Path) -> Path | None:
    """Return the highest folder around ``file`` that has a project's files, or the nearest one with ``.git``."""
    root: Path | None = None
    for folder in list(file.parents)[:_HIGHEST]:
        present = [mark for mark in _MARKS if os.path.exists(folder / mark)]
        root = folder if present else root
        if ".git" in present:
            break
    return root


def enter_project(own: Sequence[Path], others: Sequence[Path], file: Path | None) -> None:
    """Let imports find the project's modules: those in the ``own`` folders of the kernel file before the packages, as
    in Python's own runs of a script, unless the folder is a package; those in ``others``, and in the folders between
    ``file`` and its repository, after them. Nothing there stands in for one of ``ALWAYS_PACKAGES``.
    """
    leave_project()
    if not any(os.path.isfile(folder / "__init__.py") for folder in own):
        sys.meta_path.insert(0, _BeforePackages(own))
    sys.meta_path.append(_AfterPackages([*own, *others], file))


def enter_package_root(package: str, root: Path) -> None:
    """Let imports find ``package`` in ``root`` before an installed one, and other modules there after the packages."""
    if package not in ALWAYS_PACKAGES:
        sys.meta_path.insert(0, _BeforePackages([root], package))
    sys.meta_path.append(_AfterPackages([root], None))


def leave_project() -> None:
    """Let imports find nothing of the project any more."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, (_BeforePackages, _AfterPackages))]


class _BeforePackages(MetaPathFinder):
    """Finds top-level modules in folders, or ``only`` that one.

    A folder without ``__init__.py`` is none here: to Python it counts less than a package of the same name.
    """

    def __init__(self, folders: Sequence[Path], only: str | None = None) -> None:
        self._folders, self._only = [str(folder) for folder in folders], only

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or fullname in ALWAYS_PACKAGES or self._only not in (None, fullname):
            return None
        spec = PathFinder.find_spec(fullname, self._folders)
        return spec if spec is not None and spec.origin else None


class _AfterPackages(MetaPathFinder):
    """Finds top-level modules that no package is: in folders, and in those above ``file`` up to its repository.

    Above the file a folder without ``__init__.py`` is a module only where it holds the file.
    """

    def __init__(self, folders: Sequence[Path], file: Path | None) -> None:
        self._folders, self._file = [str(folder) for folder in folders], file or Path()
        root = repository_of(self._file)
        self._above = [f for f in self._file.parents if root is not None and f.is_relative_to(root)]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or fullname in ALWAYS_PACKAGES:
            return None
        if (spec := PathFinder.find_spec(fullname, self._folders)) is not None:
            return spec
        for folder in self._above:
            spec = PathFinder.find_spec(fullname, [str(folder)])
            if spec is not None and (spec.origin or self._file.is_relative_to(folder / fullname)):
                return spec
        return None


def closed_folder(folders: Sequence[str], name: str) -> Path | None:
    """Return the folder in one of ``folders`` that a dotted ``name`` leads into and that this process may not read."""
    for folder in folders:
        place = Path(folder)
        for part in name.split("."):
            place = place / part
            if os.path.isdir(place) and not os.access(place, os.R_OK | os.X_OK):
                return place
    return None


def module_in_repository(file: Path, name: str) -> Path | None:
    """Return the file of a module ``name`` somewhere in the repository of ``file``, as a path from there, that is found
    once its folder is on the import path; None where there is none, its package is another one, or looking takes
    long."""
    root, top = repository_of(file), name.split(".")[0]
    if top in sys.modules:  # so it is the one that lacks the rest
        return None
    ends = time.monotonic() + _SECONDS
    for number, (folder, folders, files) in enumerate(os.walk(root) if root and top else ()):
        if number > _MOST_FOLDERS or time.monotonic() > ends:
            break
        folders[:] = sorted(f for f in folders if not f.startswith((".", "__")) and f != "site-packages")
        if folder in sys.path or (f"{top}.py" not in files and top not in folders):
            continue
        place = _place_below(folder, name)
        if place is not None:
            return place.relative_to(root or "/")
    return None


def _place_below(folder: str, name: str) -> Path | None:
    """Return the file that ``folder`` on the import path would give the module ``name``; None where it would give
    none."""
    inside, spec = [folder], None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, inside)
        if spec is None or spec.origin is None:
            return None
        inside = list(spec.submodule_search_locations or ())
    return Path(str(spec.origin)) if spec is not None else None
