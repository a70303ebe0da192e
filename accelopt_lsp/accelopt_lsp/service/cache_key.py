"""Collect what the results for a file come from besides its texts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelopt_profiling import __version__
from accelopt_profiling.plain import to_plain

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings


def run_conditions(settings: Settings) -> list[Any]:
    """Return targets, host, limits, Python and this program's version, as plain data."""
    host = to_plain(settings.hosts.get(settings.host))
    place = [settings.host, host, settings.interpreter.path, settings.env]
    return [to_plain(settings.target), place, to_plain(settings.job_limits), __version__]


def installed_packages(python: str) -> list[str]:
    """Return the packages of an interpreter with their versions, by the names of their folders; nothing is run."""
    if not python:
        return []
    prefix = Path(os.path.abspath(python)).parent.parent
    folders = [*prefix.glob("lib*/python3*/site-packages"), *prefix.glob("lib*/python3*/dist-packages")]
    names = {
        name
        for folder in folders
        for name in os.listdir(folder)
        if name.endswith((".dist-info", ".egg-info"))
    }
    return sorted(names)
