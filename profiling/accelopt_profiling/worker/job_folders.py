"""The folders of a worker's jobs: write their source files, and remove them, also after a worker was killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from accelopt_profiling.folder_tree import remove_tree
from accelopt_profiling.source_text import encode_source

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
        path.write_bytes(encode_source(text) if path.suffix == ".py" else text.encode())


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
                remove_tree(folder)


def pid_namespace() -> int:
    """Return the number of this process's PID namespace. 0 where the system has none."""
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


class FolderRemover:
    """A process that removes folders beside the worker, so that nobody waits for it, whatever lies in them.

    It begins with those of workers that have ended, then removes the folders of ``base`` that it is told, and at the
    worker's end, even by a kill, ``base`` itself, with the archive's folder where the worker came as an archive.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        archive = Path(sys.path[0]) if sys.path else base
        folders = [base, archive.parent] if archive.name == "worker.zip" else [base]
        reading, self._names = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            try:
                _serve_removals(reading, folders)
            finally:
                os._exit(0)
        os.close(reading)
        os.set_blocking(self._names, False)

    def remove(self, name: str) -> None:
        """Remove the folder ``name`` of ``base`` soon. At the latest at the worker's end."""
        with contextlib.suppress(OSError):
            os.write(self._names, os.fsencode(name) + b"\0")

    def wait(self, job_names: Collection[str], seconds: float = 2.0) -> None:
        """Wait until ``base`` has no folders of jobs but those ``kept``, at most ``seconds``."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            names = os.listdir(self._base)
            if not any(name.startswith("job-") and name not in job_names for name in names):
                return
            time.sleep(0.01)

    def close(self, seconds: float = 2.0) -> None:
        """Let it finish, and wait for that, at most ``seconds``: where the client's end ends a container, it too."""
        os.close(self._names)
        end = time.monotonic() + seconds
        with contextlib.suppress(ChildProcessError):
            while not os.waitpid(self._process, os.WNOHANG)[0] and time.monotonic() < end:
                time.sleep(0.005)


def _serve_removals(reading: int, folders: list[Path]) -> None:
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # an open one would keep the connection to the client open
        os.dup2(null, standard)
    os.dup2(reading, 3)
    os.closerange(4, 4096)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork() == 0:  # whatever lies there, this worker's own folders go at once
        remove_stale_folders()
        os._exit(0)
    unread = b""
    while data := os.read(3, 1 << 16):
        *names, unread = (unread + data).split(b"\0")
        for name in names:
            remove_tree(folders[0] / os.fsdecode(name))
    for _ in range(_TRIES):  # the worker's children, which end with it, may still be writing
        for folder in folders:
            remove_tree(folder)
        if not any(folder.exists() for folder in folders):
            return
        time.sleep(_PAUSE_SECONDS)
