"""Limits of a step: bounds that the kernel keeps for each process, and a watch over all processes of its sandbox."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from accelopt_profiling.folder_tree import size_of_tree
from accelopt_profiling.jobs import Limits

#: How the first process of a sandbox ends when its step used too much.
TOO_MUCH_MEMORY, TOO_MANY_PROCESSES, TOO_MUCH_WRITTEN = 41, 42, 43
WATCH_SECONDS = 0.1
#: The size of a job's folder is looked at this often.
FOLDER_SECONDS = 0.5
#: A socket's two buffers hold at most so much where nothing makes them larger (Linux, ``net.core.rmem_default``).
SOCKET_BYTES = 2 * 212_992
#: How many times its memory limit a step may reserve without touching it. Our choice.
RESERVED = 16
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def apply_limits(limits: Limits, *, watched: bool, device: bool = False) -> None:
    """Bound this process: address space, CPU time, file size, open files, processes; no core files.

    Memory is what a process touches, so a step that is ``watched`` from its sandbox may reserve ``RESERVED`` times its
    limit: the inputs of a large problem that nothing reads cost nothing. Without a watch the address space is the
    bound. A step that uses the ``device`` has none, as drivers reserve terabytes.
    """
    if not device:
        _bound(resource.RLIMIT_AS, _address_space() + limits.memory_bytes * (RESERVED if watched else 1))
    _bound(resource.RLIMIT_CPU, int(limits.seconds * (os.cpu_count() or 1)) + 2)
    _bound(resource.RLIMIT_FSIZE, limits.file_bytes)
    _bound(resource.RLIMIT_NOFILE, limits.open_files)
    _bound(resource.RLIMIT_NPROC, limits.processes)
    _bound(resource.RLIMIT_CORE, 0)


def _bound(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (limit, limit))


def _address_space() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * resource.getpagesize()


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends (Linux; elsewhere the supervisor's kill has to do)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Make processes that double-forked away from their step children of this one (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def watch(
    memory: int,
    processes: int,
    written: int,
    shared: int,
    folder: str,
    shared_memory: int | None,
    reap: Callable[[], None],
) -> None:
    """Measure all processes of the sandbox every 0.1 s.

    End this one, and so the sandbox, when they use too much.

    ``memory`` and ``written`` (to files) are in bytes; ``shared`` is the memory that a step has in common with the
    preloaded parent that it was forked from. What lies in ``folder`` counts as written, whatever way it came there
    (through mapped memory, in a sparse file), and so do files without a name that are held open; as memory count what
    lies in ``shared_memory`` (a descriptor of that folder), and each socket's buffers. Where several bounds are
    exceeded at one time, written bytes are reported before memory and memory before processes: ended children that
    nobody waited for count as processes, so on a busy machine a late measurement would name them instead of the bytes
    that they wrote.
    """
    rounds = 0
    while True:
        time.sleep(WATCH_SECONDS)
        reap()
        rounds += 1
        pids = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        looks = rounds % round(FOLDER_SECONDS / WATCH_SECONDS) == 0
        if looks and size_of_tree(folder) + _size_of_unnamed(folder, pids) > written:
            os._exit(TOO_MUCH_WRITTEN)
        if sum(_written(pid) for pid in ("1", *pids)) > written:
            os._exit(TOO_MUCH_WRITTEN)
        kernels = _size_of_files(shared_memory) + SOCKET_BYTES * _sockets()
        if kernels > memory:
            os._exit(TOO_MUCH_MEMORY)
        used = sum(own_memory(pid) for pid in pids) + kernels
        if used > memory + len(pids) * shared and _exact_memory(pids) + kernels > memory + shared:
            os._exit(TOO_MUCH_MEMORY)
        if len(pids) > processes:
            os._exit(TOO_MANY_PROCESSES)


def _size_of_files(folder: int | None) -> int:
    """Return the bytes that the files of a file system in memory take."""
    if folder is None:
        return 0
    state = os.fstatvfs(folder)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def _sockets() -> int:
    """Return the number of sockets of this process's network namespace."""
    try:
        return int(Path("/proc/net/sockstat").read_text().split()[2])
    except (OSError, ValueError, IndexError):
        return 0


def _size_of_unnamed(folder: str, pids: list[str]) -> int:
    """Return the bytes on the disk of ``folder`` of files that processes hold open and that have no name any more."""
    sizes: dict[int, int] = {}
    with contextlib.suppress(OSError):
        disk = os.stat(folder).st_dev
        for pid in pids:
            with contextlib.suppress(OSError):  # it ended, or closed the file
                for entry in os.scandir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        state = entry.stat()
                        if state.st_dev == disk and not state.st_nlink:
                            sizes[state.st_ino] = state.st_blocks * 512
    return sum(sizes.values())


def own_memory(pid: str) -> int:
    """Return the resident bytes of one process that are no file's.

    Pages shared with the preloaded parent count.
    """
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _written(pid: str) -> int:
    """Return the bytes that a process, and the children it waited for, wrote: by calls (``wchar``), which counts files
    that are held in memory too (tmpfs), or on their way to a disk (``write_bytes``), which counts mapped files too.
    """
    counts = {"wchar": 0, "write_bytes": 0}
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in counts:
                counts[name] = int(value)
    return max(counts.values())


def _exact_memory(pids: list[str]) -> int:
    """Return the proportional bytes of all processes: each page counts once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += sum(
                int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss_Anon")
            )
    return total
