"""The folders of a worker's jobs: write their source files, and remove them, also after a worker was killed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

_TRIES, _PAUSE_SECONDS = 40, 0.05


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
    """Remove a folder, also what user code made unreadable for its owner; a link, and what cannot be removed, stays."""
    if folder.is_symlink():
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for root, folders, _ in os.walk(folder):
            for inner in (os.path.join(root, name) for name in folders):
                if not os.path.islink(inner):
                    with contextlib.suppress(OSError):
                        os.chmod(inner, 0o700)
        shutil.rmtree(folder, ignore_errors=True)


def remove_stale_folders() -> None:
    """Remove the folders of this user's workers that have ended.

    They are named ``accelopt-PID-NAMESPACE-...`` and ``accelopt-worker-PID-NAMESPACE-...``. A worker of another PID
    namespace (a container that shares the folder) may be alive, so its folders stay.
    """
    for folder in Path(tempfile.gettempdir()).glob("accelopt-*-*"):
        match = re.match(r"accelopt-(?:worker-)?(\d+)-(?:(\d+)-)?", folder.name)
        if match and match.group(2) not in (None, str(pid_namespace())):
            continue
        with contextlib.suppress(OSError):  # another worker removes the same
            state = folder.lstat()  # a link may lead anywhere
            if (
                match
                and _gone(match.group(1))
                and stat.S_ISDIR(state.st_mode)
                and state.st_uid == os.getuid()
            ):
                remove_folder(folder)


def pid_namespace() -> int:
    """Return the number of this process's PID namespace; 0 where the system has none."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _gone(pid: str) -> bool:
    """Return whether there is no such process, or only one that ended and was not waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return not Path(f"/proc/{pid}").exists()


def remove_at_exit(base: Path) -> int:
    """Start a process that removes ``base`` when this one has ended, even by a kill.

    Where the worker came as an archive, the archive's folder is removed too. Returns the descriptor whose closing
    tells that process of the end: keep it open, and let no child have it.
    """
    archive = Path(sys.path[0]) if sys.path else base
    folders = [base, archive.parent] if archive.name == "worker.zip" else [base]
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            _wait_and_remove(reading, folders)
        finally:
            os._exit(0)
    os.close(reading)
    return writing


def _wait_and_remove(reading: int, folders: list[Path]) -> None:
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # an open one would keep the connection to the client open
        os.dup2(null, standard)
    os.dup2(reading, 3)
    os.closerange(4, 4096)
    os.read(3, 1)
    for _ in range(_TRIES):  # the worker's children, which end with it, may still be writing
        for folder in folders:
            remove_folder(folder)
        if not any(folder.exists() for folder in folders):
            return
        time.sleep(_PAUSE_SECONDS)
