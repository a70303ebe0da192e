"""A small process that outlives the worker by a moment, to remove its files even when it was killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from accelopt_profiling.worker.sources import remove_folder

_TRIES, _PAUSE_SECONDS = 40, 0.05


def leave_a_janitor(base: Path) -> int:
    """Start it for ``base`` and, where the worker came as an archive, for that archive's folder.

    Returns the descriptor that tells it of this process's end: keep it open, and let no child have it.
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
