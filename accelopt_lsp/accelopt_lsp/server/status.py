"""Keep one line about what the server is doing, for the editor's status item: the notification ``accelopt/status``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from accelopt_lsp.state.jobs import BackgroundJob

METHOD = "accelopt/status"

State = Literal["idle", "profiling", "optimizing", "paused", "host-unreachable", "untrusted"]

Step = Literal["target", "profiled", "accepted", "model"]

#: What each kind of job makes the server be; of several, the first counts.
_BUSY: dict[str, State] = {"optimize": "optimizing", "profile": "profiling"}


@dataclass(frozen=True)
class Status:
    """``message`` is one line, ``detail`` what to do about it; ``jobs`` are the running ones. ``reached`` are the
    steps of a first run that are true, ``plain`` the open documents without a kernel."""

    state: State
    message: str
    detail: str = ""
    target: str = ""
    jobs: tuple[dict[str, Any], ...] = ()
    reached: tuple[Step, ...] = ()
    plain: tuple[str, ...] = ()


class StatusLine:
    """Tells the client the status, by ``send``, whenever it changes; ``log`` is for what comes once.

    ``untrusted`` returns a folder of open kernels that nobody trusts, ``plain`` the open documents without a kernel.
    """

    def __init__(
        self,
        send: Callable[[dict[str, Any]], None],
        log: Callable[[str], None] = lambda message: None,
        untrusted: Callable[[], Path | None] = lambda: None,
        plain: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._send, self.log, self._untrusted, self._plain = send, log, untrusted, plain
        self.target = ""
        self.host_problem: str | None = None
        self.isolation = ""
        self.reached: set[Step] = set()
        self._last: Status | None = None

    def host_down(self, message: str) -> None:
        """Say once that the host is not reachable; the next success takes it back."""
        if self.host_problem != message:
            self.host_problem = message
            self.log(message)

    def host_up(self) -> None:
        self.host_problem = None

    def update(self, jobs: Iterable[BackgroundJob]) -> Status:
        status = self._now(tuple(jobs))
        status = replace(status, reached=tuple(sorted(self.reached)), plain=tuple(sorted(self._plain())))
        if status != self._last:
            self._last = status
            plain = {name: list(value) for name, value in vars(status).items() if isinstance(value, tuple)}
            self._send({**asdict(status), **plain})
        return status

    def _now(self, jobs: tuple[BackgroundJob, ...]) -> Status:
        fields = ("kind", "uri", "title", "paused", "started", "progress")
        listed = tuple({"job": j.id, **{name: getattr(j, name) for name in fields}} for j in jobs)
        for kind, state in _BUSY.items():
            for job in jobs:
                if job.kind == kind and job.paused:
                    return Status(
                        "paused",
                        f"{job.title}: paused",
                        detail=self.host_problem or "",
                        target=self.target,
                        jobs=listed,
                    )
                if job.kind == kind:
                    return Status(
                        state, job.title, detail=self.host_problem or "", target=self.target, jobs=listed
                    )
        if self.host_problem:
            return Status(
                "host-unreachable",
                "The host cannot be reached",
                detail=self.host_problem,
                target=self.target,
                jobs=listed,
            )
        if (folder := self._untrusted()) is not None:
            detail = "Nothing of it is run. Trust it to see what its kernels cost."
            return Status(
                "untrusted", f"{folder} is not trusted", detail=detail, target=self.target, jobs=listed
            )
        message = "Ready, kernels are not isolated completely" if self.isolation else "Ready"
        return Status("idle", message, detail=self.isolation, target=self.target, jobs=listed)
