"""One job that runs here: where it is in its steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from accelopt_profiling.jobs import Job, Step
from accelopt_profiling.worker.running import RunningStep


@dataclass(eq=False)
class RunningJob:
    """``running`` is the current step's process, None while it waits for the devices. ``since`` is when the step began,
    or began to wait (``time.monotonic``).
    """

    id: str
    job: Job
    folder: Path
    index: int = 0
    running: RunningStep | None = None
    since: float = 0.0

    @property
    def step(self) -> Step:
        return self.job.steps[self.index]

    @property
    def last(self) -> bool:
        return self.index == len(self.job.steps) - 1

    @property
    def name(self) -> str:
        return self.job.source.name or self.job.source.kernel
