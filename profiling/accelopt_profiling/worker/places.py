"""Which jobs may run now, and which wait for a place."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection

from accelopt_profiling.jobs import Job

#: How many jobs run at once; each takes descriptors and a process.
_MOST_JOBS = 64


class Places:
    """Background jobs get one place per core but one; all jobs together get 64. Who waits is served in order."""

    def __init__(self) -> None:
        self._for_background = max(1, (os.cpu_count() or 2) - 1)
        self._waiting: deque[tuple[str, Job]] = deque()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def wait(self, job_id: str, job: Job) -> None:
        self._waiting.append((job_id, job))

    def leave(self, job_id: str) -> None:
        self._waiting = deque(waiting for waiting in self._waiting if waiting[0] != job_id)

    def free_for(self, job: Job, running: Collection[Job]) -> bool:
        if job.background and sum(other.background for other in running) >= self._for_background:
            return False
        return len(running) < _MOST_JOBS

    def next(self, running: Collection[Job]) -> tuple[str, Job] | None:
        """The first that may run now beside those that do; it waits no longer."""
        for waiting in self._waiting:
            if self.free_for(waiting[1], running):
                self._waiting.remove(waiting)
                return waiting
        return None
