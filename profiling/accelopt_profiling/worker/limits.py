"""Limits of one child process."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

from accelopt_profiling.jobs import Limits

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def apply_limits(limits: Limits, device: bool = False) -> None:
    """Bound this process: address space, CPU time, file size, open files, processes; no core files.

    A step that uses the ``device`` has no bound on its address space, of which drivers reserve terabytes: what it
    really uses is watched from its cell.
    """
    if not device:
        _bound(resource.RLIMIT_AS, _address_space() + limits.memory_bytes)
    _bound(resource.RLIMIT_CPU, int(limits.seconds * (os.cpu_count() or 1)) + 2)
    _bound(resource.RLIMIT_FSIZE, limits.file_bytes)
    _bound(resource.RLIMIT_NOFILE, limits.open_files)
    _bound(resource.RLIMIT_NPROC, limits.processes)
    _bound(resource.RLIMIT_CORE, 0)


def _bound(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (wanted, wanted))


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
