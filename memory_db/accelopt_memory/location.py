"""Where the memory lives: the user's data folder, or the file that ``ACCELOPT_DB`` names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """The database's path. Nothing is created or opened, so that asking leaves no trace."""
    named = (os.environ if environ is None else environ).get("ACCELOPT_DB", "").strip()
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_data_path("accelopt", appauthor=False) / "memory.db"
