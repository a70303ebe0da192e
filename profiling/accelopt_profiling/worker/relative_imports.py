"""Packages for files of a job that import their neighbours relatively (``from .tiles import TILE``).

A job has files, not packages: the folder of such a file, and as many folders above it as its imports climb, become a
package here.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import ModuleType

from accelopt_profiling.source_text import syntax_of

_RELATIVE = re.compile(r"\bfrom\s+\.")
#: The name of the outermost folder; those below it have their own.
PACKAGE = "job_package"


def climbed(files: Mapping[str, str]) -> int:
    """Return how many folders up the relative imports of Python files reach: 1 is a file's own, 0 without any."""
    highest = 0
    for name, text in files.items():
        if name.endswith(".py") and _RELATIVE.search(text):
            try:
                tree = syntax_of(text)
            except (SyntaxError, ValueError, RecursionError):
                continue  # importing it will say so
            highest = max([highest, *(n.level for n in ast.walk(tree) if isinstance(n, ast.ImportFrom))])
    return highest


def package_for(relative: str, files: Mapping[str, str], root: Path) -> str | None:
    """Import the packages around the job's file ``relative`` and return the name of the innermost; None where the file
    imports nothing relatively. ``root`` is the folder of the job's files.

    Raises what a package's own ``__init__.py`` raises.
    """
    if not climbed({relative: files.get(relative, "")}):
        return None
    folders = list(PurePosixPath(relative).parent.parts)
    levels = min(climbed(files), len(folders) + 1)
    inner = folders[len(folders) - (levels - 1) :] if levels > 1 else []
    outer = root.joinpath(*folders[: len(folders) - len(inner)])
    _outermost(outer)
    name = PACKAGE
    for folder in inner:
        name = f"{name}.{folder}"
        importlib.import_module(name)
    return name


def _outermost(folder: Path) -> None:
    present = sys.modules.get(PACKAGE)
    if present is not None and list(present.__path__) == [str(folder)]:
        return
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    init = folder / "__init__.py"
    if not init.is_file():
        module = ModuleType(PACKAGE)
        module.__path__ = [str(folder)]
        sys.modules[PACKAGE] = module
        return
    spec = importlib.util.spec_from_file_location(PACKAGE, init, submodule_search_locations=[str(folder)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)
