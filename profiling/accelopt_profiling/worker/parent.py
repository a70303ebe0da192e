"""The supervisor's side of a warm parent: start it, ask it for children, hear how they end."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import Runtime
from accelopt_profiling.worker import warm


@dataclass
class Started:
    token: str
    pid: int


@dataclass
class Ended:
    """A child's end: ``status`` is its exit code, negative for the signal that ended it.

    ``why`` is "memory" or "processes" when all processes of the step together went beyond a limit.
    """

    token: str
    status: int
    why: str = ""


class WarmParent:
    """One warm parent. ``missing`` names the package it lacks, once it is ready; ``base`` is the folder of all jobs,
    ``cells`` whether each step gets namespaces of its own."""

    def __init__(self, runtime: Runtime, base: Path, cells: bool) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            keep = theirs.fileno()
            os.closerange(3, keep)
            os.closerange(keep + 1, 4096)
            warm.serve(theirs, runtime, base, cells)
        theirs.close()
        self.runtime = runtime
        self.ready = False
        self.missing: str | None = None
        self._control = ours
        self._control.setblocking(False)

    def fileno(self) -> int:
        return self._control.fileno()

    def request(self, token: str, body: dict[str, Any], folder: Path, frames: int, output: int) -> None:
        """Ask for a child. The body travels in a file of the job's folder: it may be larger than a socket message."""
        path = folder / f"request-{token}.json"
        path.write_text(json.dumps(body), encoding="utf-8")
        message = json.dumps({"token": token, "request": str(path)}).encode()
        socket.send_fds(self._control, [message], [frames, output])

    def hear(self) -> list[Started | Ended] | None:
        """Read what it says; None when it has ended."""
        heard: list[Started | Ended] = []
        while True:
            try:
                data = self._control.recv(1 << 16)
            except BlockingIOError:
                return heard
            except OSError:
                return None
            if not data:
                return None
            message = json.loads(data)
            if "ready" in message:
                self.ready, self.missing = True, message["missing"]
            elif "started" in message:
                heard.append(Started(message["started"], message["pid"]))
            else:
                heard.append(Ended(message["ended"], message["status"], message.get("why", "")))

    def close(self) -> None:
        self._control.close()
