"""Compute the cache key of a file's results: its text, its problem, the modules that they import, and the settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from accelopt_lsp.backend.protocol import FileText
from accelopt_lsp.settings.load import Settings
from accelopt_profiling import __version__
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.plain import to_plain


def targets_of(settings: Settings) -> dict[Dialect, str]:
    return {"triton": settings.target.triton, "nki": settings.target.nki}


def _sources(file: FileText) -> dict[str, str]:
    """Return every text the results depend on: the file, its problem, and the project's modules that they
    import."""
    source = file.examined.source(ship_imports=True)
    return {**source.files, "problem": json.dumps(to_plain(file.examined.problem.ref))}


def content_key(file: FileText) -> str:
    """Return a hash of everything that results come from: texts, targets, host, and this program's
    version."""
    settings = file.settings
    where = [settings.host, settings.interpreter.path, settings.env]
    parts = [_sources(file), targets_of(settings), where, __version__]
    return "profile:" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def depends_on_any(file: FileText, paths: Iterable[str]) -> bool:
    """Return whether any of the files at ``paths`` is among what the results for ``file`` come from."""
    examined = file.examined
    used = {(examined.root / name).resolve() for name in examined.source(ship_imports=True).files}
    return any(Path(path).resolve() in used for path in paths)
