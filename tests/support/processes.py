"""Processes of this machine, any of which may end while it is looked at."""

from __future__ import annotations

import contextlib
from pathlib import Path


def stat_fields(pid: int) -> list[str]:
    """Return what the system says of a process from its state on; nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def is_running(pid: int) -> bool:
    """Say whether a process has this id and has not ended; one that nobody has collected has ended."""
    fields = stat_fields(pid)
    return bool(fields) and fields[0] != "Z"


def descendants(pid: int) -> list[int]:
    """Return all processes below ``pid``, its own children first."""
    pids: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                pids += [child, *descendants(child)]
    return pids
