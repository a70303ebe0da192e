"""A suggestion's diff as a ``.patch`` file, for editors that have no other way to show one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import platformdirs

from accelopt_agent.suggestions.suggestion import Suggestion


async def write_patch(suggestion: Suggestion) -> Path:
    """Write the diff to the user's cache folder and return where it is.

    Raises:
        OSError: the folder cannot be written.
    """
    path = Path(platformdirs.user_cache_dir("accelopt")) / "patches" / f"{suggestion.id}.patch"
    await asyncio.to_thread(_write, path, suggestion.diff)
    return path


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
