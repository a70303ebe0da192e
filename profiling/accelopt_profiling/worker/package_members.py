"""Import a kernel file as the member of its package that it is, where the package lies on this machine.

Everything that imports it by its package's name gets the job's text, so that a module runs once: a second run under
another name would register its operators twice. The rest of the package comes from where it lies.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from accelopt_profiling.jobs import Source

#: Packages of this many folders are looked for; deeper ones are no packages that people write.
_DEEPEST = 16


def member_name(source: Source, relative: str) -> str | None:
    """Return the dotted name of the kernel file in the package on this machine that it belongs to.

    None where it is no kernel file, belongs to none, or the job came from another machine.
    """
    real = Path(source.name)
    if (
        relative != source.kernel
        or not source.import_paths
        or real.suffix != ".py"
        or real.stem == "__init__"
    ):
        return None
    names = [real.stem]
    folder = real.parent
    while (folder / "__init__.py").is_file() and len(names) < _DEEPEST:
        names.append(folder.name)
        folder = folder.parent
    if len(names) == 1 or not all(name.isidentifier() for name in names):
        return None
    return ".".join(reversed(names))


def enter_package(source: Source, name: str, file: Path) -> Exception | None:
    """Import the packages above the member ``name``; from then on importing it gives ``file``. Return what they raised:
    the file itself may do without what they want. A package that raises is entered without its ``__init__``.
    """
    root = str(Path(source.name).parents[name.count(".")])
    sys.path[:] = [
        root,
        *(p for p in sys.path if p != root),
    ]  # before copies of its files that came with the job
    sys.meta_path.insert(0, _MemberFinder(name, file))
    parts = name.split(".")[:-1]
    refused: Exception | None = None
    for depth in range(1, len(parts) + 1):
        package = ".".join(parts[:depth])
        try:
            importlib.import_module(package)
        except Exception as error:
            refused = refused or error
            bare = ModuleType(package)
            bare.__path__ = [str(Path(root, *parts[:depth]))]
            sys.modules[package] = bare
    return refused


class _MemberFinder(MetaPathFinder):
    """Finds one module in a file of the job."""

    def __init__(self, name: str, file: Path) -> None:
        self._name, self._file = name, file

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self._file) if fullname == self._name else None
