"""The interface of all hosts (this machine, SSH, Ray): run jobs, report facts, and the errors of both."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Protocol

from accelopt_profiling.jobs import Job, Runtime, StepError
from accelopt_profiling.worker.activity import WorkerActivity
from accelopt_profiling.worker.isolation import Isolation


class HostUnreachableError(Exception):
    """The host cannot be used: which one, what happened, what to do next.

    ``again_in`` is after how many seconds another try makes sense; None when it does not.
    """

    def __init__(self, message: str, again_in: float | None = None) -> None:
        super().__init__(message)
        self.again_in = again_in


class JobInterruptedError(HostUnreachableError):
    """The connection or the worker was lost while a job ran. The job will never be answered."""


class JobFailedError(Exception):
    """A step ended without an answer. ``step`` is its name, ``error`` says why."""

    def __init__(self, step: str, error: StepError) -> None:
        super().__init__(error.message)
        self.step, self.error = step, error


@dataclass(frozen=True)
class HostFacts:
    """The facts in a host's first message.

    Versions by package name; packages that it lacks are left out.

    ``devices`` are GPUs; ``resources`` are other amounts that a job can ask for, by name ("neuron_cores", a cluster's
    own).
    """

    name: str
    python: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    devices: list[dict[str, Any]] = field(default_factory=list)
    memory_bytes: int = 0
    memory_free_bytes: int = 0
    resources: dict[str, float] = field(default_factory=dict)
    isolation: Isolation = field(default_factory=Isolation)


@dataclass(frozen=True)
class HostActivity:
    """The jobs of this user's workers on a host.

    ``device`` names the step that has its devices, of whichever user.
    """

    workers: list[WorkerActivity] = field(default_factory=list)
    device: str = ""
    resources_free: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class JobMessage:
    """One message of a running job: a partial result of a step, or with ``final`` its result.

    ``attempt`` counts from 1; messages of a later attempt replace those of an earlier one.
    """

    step: str
    value: Any
    final: bool = False
    attempt: int = 1


class Host(Protocol):
    """A place where jobs run. A ``remote`` one sees no folder of this machine, so a job brings every file."""

    name: str
    remote: bool

    async def facts(self) -> HostFacts:
        """Connect if necessary and return the host's facts. Raises HostUnreachableError."""

    def run(self, job: Job) -> AsyncGenerator[JobMessage, None]:
        """Run a job and yield its messages.

        Closing the iterator early kills the job on the host.

        Raises:
            HostUnreachableError: the connection could not be made.
            JobInterruptedError: it was lost while the job ran.
            JobFailedError: a step failed; the steps after it were not run.
        """

    async def preload(self, runtime: Runtime) -> None:
        """Import a runtime's packages ahead of the first job that needs them."""

    async def activity(self) -> HostActivity:
        """Connect if necessary and return what runs there now. Raises HostUnreachableError."""

    async def close(self) -> None:
        """End the worker and everything it runs."""
