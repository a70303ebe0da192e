"""What all processes of a cell use together, watched by its first process."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

#: How the first process of a cell ends when its step used too much.
TOO_MUCH_MEMORY, TOO_MANY_PROCESSES, TOO_MUCH_WRITTEN = 41, 42, 43
WATCH_SECONDS = 0.1


def watch(memory: int, processes: int, written: int, shared: int, reap: Callable[[], None]) -> None:
    """Look at all processes of the cell again and again; ends this one, and so the cell, when they use too much.

    A step beyond several bounds is told of what it wrote first, then of its memory: an unreaped child is a process too,
    and a late look may find many of them where an earlier one would have found the reason for its limit.

    ``memory`` and ``written`` (to disk) are in bytes; ``shared`` is what a step has in common with the warm parent that
    it was forked from.
    """
    while True:
        time.sleep(WATCH_SECONDS)
        reap()
        pids = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        if sum(_written(pid) for pid in ("1", *pids)) > written:
            os._exit(TOO_MUCH_WRITTEN)
        used = sum(own_memory(pid) for pid in pids)
        if used > memory + len(pids) * shared and _exact_memory(pids) > memory + shared:
            os._exit(TOO_MUCH_MEMORY)
        if len(pids) > processes:
            os._exit(TOO_MANY_PROCESSES)


def own_memory(pid: str) -> int:
    """Resident bytes of one process that are no file's; pages shared with the warm parent count."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _written(pid: str) -> int:
    """Bytes that a process, and the children it waited for, sent on their way to a disk."""
    try:
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            if line.startswith("write_bytes:"):
                return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0


def _exact_memory(pids: list[str]) -> int:
    """Proportional bytes of all processes: each page counts once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += sum(
                int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss_Anon")
            )
    return total
