"""Names the file of the memory, without importing what opens it: ``accelopt memory path`` answers at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: Stands for a memory that is kept in the process alone and gone with it.
NOWHERE = Path(":memory:")


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the user's database: the file that ``ACCELOPT_DB`` names, else one in the user's
    data folder. Nothing is created or opened."""
    override = (os.environ if environ is None else environ).get("ACCELOPT_DB", "").strip()
    if override:
        return Path(override).expanduser().absolute()
    import platformdirs

    return platformdirs.user_data_path("accelopt", appauthor=False) / "memory.db"


def project_path(root: Path, personal: Path) -> Path:
    """Return the path of the database of a project's own, in a folder beside the ``personal`` one."""
    import hashlib

    name = f"{root.name}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:8]}.db"
    return personal.parent / "projects" / name


def all_paths(personal: Path) -> list[Path]:
    """Return the paths of the ``personal`` database and of those of projects beside it, as far as they exist."""
    return [path for path in [personal, *sorted(personal.parent.glob("projects/*.db"))] if path.is_file()]
