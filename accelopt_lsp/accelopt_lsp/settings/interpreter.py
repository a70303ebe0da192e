"""Find the Python whose packages kernels see: one answer for the command line, the server and ``doctor``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_FOLDERS = (".venv", "venv")


@dataclass(frozen=True)
class KernelPython:
    """A Python on this machine, and in words where its name comes from."""

    path: str
    origin: str

    def __str__(self) -> str:
        return f"{self.path} ({self.origin})"


#: The one AccelOpt runs in.
OWN = KernelPython(sys.executable, "AccelOpt's own; no other was found")


def find_interpreter(
    setting: str,
    layer: str,
    start: Path | None,
    root: Path | None,
    environ: Mapping[str, str],
    trusted: bool,
    in_editor: str | None = None,
) -> KernelPython:
    """Return the first of: the setting ``python`` (from ``layer``), the choice ``in_editor``, ``VIRTUAL_ENV``, the
    nearest ``.venv`` or ``venv`` from ``start`` (a file or folder) upwards to ``root``, ``CONDA_PREFIX``, our own.

    A repository's environment is a program of its author's: without trust it is passed over, unless it is the one that
    AccelOpt runs in. Nothing is executed.
    """
    if setting:
        return KernelPython(str(Path(setting).expanduser()), f"the setting `python`, {layer}")
    if trusted and in_editor:
        return KernelPython(in_editor, "chosen in the editor")
    python = _of_prefix(environ, "VIRTUAL_ENV")
    if python is None and trusted and start is not None:
        python = next(_beside(start, root), None)
    return python or _of_prefix(environ, "CONDA_PREFIX") or OWN


def environment_passed_over(start: Path | None, root: Path | None) -> str | None:
    """Return the Python beside ``start`` that only a trusted folder gets; None where there is none, or it is ours."""
    beside = next(_beside(start, root), None) if start is not None else None
    own = beside is not None and Path(beside.path).parent.parent == Path(sys.prefix)
    return None if beside is None or own else beside.path


def _of_prefix(environ: Mapping[str, str], variable: str) -> KernelPython | None:
    prefix = environ.get(variable)
    python = _python_in(Path(prefix)) if prefix else None
    return KernelPython(str(python), f"from {variable}") if python is not None else None


def _beside(start: Path, root: Path | None) -> Iterator[KernelPython]:
    start = start.absolute()
    folder = start if start.is_dir() else start.parent
    last = root if root is not None and folder.is_relative_to(root) else folder
    for place in (folder, *folder.parents):
        for name in _FOLDERS:
            python = _python_in(place / name)
            if python is not None:
                yield KernelPython(str(python), f"the environment {name} in {place}")
        if place == last:
            return


def _python_in(prefix: Path) -> Path | None:
    python = prefix / "bin" / "python"
    return python if python.is_file() else None
