"""Compute the cache key of a file's results: its text, its problem, the modules that they import, and the settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelopt_profiling import __version__
from accelopt_profiling.kernel_file import KernelFile
from accelopt_profiling.plain import to_plain

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings  # the process that computes keys has no use for it


def run_conditions(settings: Settings) -> list[Any]:
    """Return what results come from besides texts, as plain data: targets, host, Python, and this program's version."""
    return [to_plain(settings.target), [settings.host, settings.interpreter.path, settings.env], __version__]


def content_key(examined: KernelFile, conditions: list[Any]) -> str:
    """Return a hash of everything that results come from: the file, its problem, the project's modules that they
    import, and the ``run_conditions``."""
    source = examined.source(ship_imports=True)
    sources = {**source.files, "problem": json.dumps(to_plain(examined.problem.ref))}
    parts = json.dumps([sources, *conditions], sort_keys=True)
    return "profile:" + hashlib.sha256(parts.encode()).hexdigest()


def depends_on_any(examined: KernelFile, paths: Iterable[str]) -> bool:
    """Return whether any of the files at ``paths`` is among what the results for a file come from."""
    used = {(examined.root / name).resolve() for name in examined.source(ship_imports=True).files}
    return any(Path(path).resolve() in used for path in paths)
