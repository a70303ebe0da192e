"""The folders of a worker's jobs: write source files, remove them, and what a killed worker left behind."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_sources(root: Path, files: Mapping[str, str]) -> None:
    """Write ``files`` (relative path -> text) below ``root``, line ends as they are.

    Raises:
        ValueError: a path leaves ``root``.
        OSError: the host's disk is full or not writable.
    """
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / name
        if not path.resolve().is_relative_to(root.resolve()):
            raise ValueError(f"The source path {name} leaves the job's folder.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))


def remove_folder(folder: Path) -> None:
    """Remove it with all in it, also what user code made unreadable for its owner; what cannot be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for root, folders, _ in os.walk(folder):
            for inner in (os.path.join(root, name) for name in folders):
                if not os.path.islink(inner):
                    with contextlib.suppress(OSError):
                        os.chmod(inner, 0o700)
        shutil.rmtree(folder, ignore_errors=True)


def remove_stale_folders() -> None:
    """Remove what workers of this user that are gone left behind: ``accelopt-PID-SPACE-...``, and the same with
    ``worker-``. A worker of another PID namespace (a container that shares the folder) may well be alive."""
    for folder in Path(tempfile.gettempdir()).glob("accelopt-*-*"):
        match = re.match(r"accelopt-(?:worker-)?(\d+)-(?:(\d+)-)?", folder.name)
        if match and match.group(2) not in (None, str(pid_space())):
            continue
        with contextlib.suppress(OSError):  # another worker removes the same
            if match and _gone(match.group(1)) and folder.stat().st_uid == os.getuid():
                remove_folder(folder)


def pid_space() -> int:
    """What tells this process's PID namespace from others; 0 where the system has none."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _gone(pid: str) -> bool:
    """Whether there is no such process, or one that ended and waits for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return not Path(f"/proc/{pid}").exists()
