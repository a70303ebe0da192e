"""How long a process stood ready and got no core: a limit of time leaves that out, so that load decides nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def seconds_without_core(pid: int) -> float:
    """Return the seconds that the step with the main process ``pid`` was ready to run and waited for a core.

    The kernel counts the waits per thread (second field of ``/proc/PID/schedstat``, in ns; Linux, "Scheduler
    Statistics"). Those of the main thread count, and beside them the longest of any other thread or process that it
    started: while one waits for the other only one of them is ready. 0 where the kernel does not tell.
    """
    main, *others = [_waited(thread) for thread in _threads(pid)] or [0.0]
    return main + max(others, default=0.0)


def _threads(pid: int) -> Iterator[Path]:
    """Yield the threads of a process, the main one first, then those of the processes that they started."""
    folder = _PROC / str(pid) / "task"
    with contextlib.suppress(OSError, ValueError):
        threads = sorted((int(t.name) != pid, t) for t in folder.iterdir())
        yield from (thread for _, thread in threads)
        for _, thread in threads:
            for child in (thread / "children").read_text().split():
                yield from _threads(int(child))


def _waited(thread: Path) -> float:
    try:
        return int((thread / "schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
