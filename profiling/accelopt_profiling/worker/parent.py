"""The supervisor's side of a warm parent: start it, ask it for children, hear how they end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import Runtime, StepError
from accelopt_profiling.worker import warm

#: How many seconds a runtime's packages may take to import, from a slow network drive too.
_IMPORT_SECONDS = 300.0


@dataclass
class Started:
    token: str
    pid: int


@dataclass
class Ended:
    """A child's end: ``status`` is its exit code, negative for the signal that ended it.

    ``why`` is "memory", "processes" or "written" when all processes of the step together went beyond a limit.
    """

    token: str
    status: int
    why: str = ""


class WarmParent:
    """One warm parent. ``missing`` names the package it lacks, once it is ready; ``base`` is the folder of all jobs,
    ``cells`` whether each step gets namespaces of its own. When it is not ``ready`` by its ``deadline``, it hangs."""

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
        self.deadline = time.monotonic() + _IMPORT_SECONDS
        self.missing: str | None = None
        self._control = ours
        self._control.setblocking(False)

    def fileno(self) -> int:
        return self._control.fileno()

    @property
    def lost(self) -> StepError:
        """The answer of its steps when it has ended by itself."""
        what = f"The worker's {self.runtime} process ended unexpectedly"
        return StepError("crashed", f"{what}; save again to start it anew.")

    @property
    def lacks(self) -> StepError:
        """The answer of its steps when it is without a package."""
        what = f"{self.missing} cannot be imported where kernels run"
        return StepError(
            "missing-package", f"{what}: pip install 'accelopt-lsp[triton]' there, then save again."
        )

    def request(self, token: str, body: dict[str, Any], base: Path, frames: int, output: int) -> None:
        """Ask for a child. The body travels in a file, as it may be larger than a socket message; the file has no name,
        as earlier steps of the job may have left links of any name.

        Raises:
            ConnectionError: the process has ended.
            OSError: there is no room for the file in ``base``.
        """
        with tempfile.TemporaryFile(dir=base) as file:
            file.write(json.dumps(body).encode())
            file.flush()
            socket.send_fds(self._control, [token.encode()], [frames, output, file.fileno()])

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

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let it end what it started, and itself; while it imports it hears nothing, and is killed."""
        self._control.close()
        if not self.ready:
            self.kill()

    def wait(self) -> None:
        """Until it has ended, after ``close``."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
