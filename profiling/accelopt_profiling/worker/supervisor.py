"""The worker's main loop: framed JSON in, framed JSON out.

The path of a job from here: ``job_scheduler`` asks a ``preloaded_parent`` for each step, which forks a ``step_process``
inside a ``sandbox``. ``docs/explanation/worker-protocol.md`` describes the messages.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from accelopt_profiling.plain import to_plain
from accelopt_profiling.worker.activity import all_activity
from accelopt_profiling.worker.descriptor_events import DescriptorEvents
from accelopt_profiling.worker.frames import Decoder, encode
from accelopt_profiling.worker.handshake import hello
from accelopt_profiling.worker.isolation import probe_isolation
from accelopt_profiling.worker.job_folders import FolderRemover, pid_namespace
from accelopt_profiling.worker.job_scheduler import JobScheduler
from accelopt_profiling.worker.sandbox_plan import SandboxPlan


class Supervisor:
    """Serves one client on two descriptors until the input ends."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._decoder = Decoder()
        self._events = DescriptorEvents()
        self._base = Path(tempfile.mkdtemp(prefix=f"accelopt-{os.getpid()}-{pid_namespace()}-"))
        self._remover = FolderRemover(self._base)
        self._isolation, plan = probe_isolation(SandboxPlan.of_worker(self._base))
        self._scheduler = JobScheduler(
            plan, self._isolation.processes, send=self._send, events=self._events, remover=self._remover
        )
        self._open = True

    def serve(self) -> None:
        """Serve until the input ends or the client sends "shutdown".

        Then end everything and remove every file.
        """
        self._events.add(self._read, self._read_client)
        try:
            self._send(hello(self._isolation))
            while self._open:
                self._events.wait(self._scheduler.seconds_until_due())
                self._scheduler.advance()
        except ConnectionError:
            pass  # the client has gone
        finally:
            self._scheduler.close()
            self._remover.close()

    def _send(self, message: dict[str, Any]) -> None:
        data = memoryview(encode(message))
        while data:
            data = data[os.write(self._write, data) :]

    def _read_client(self) -> None:
        data = os.read(self._read, 1 << 20)
        if not data:
            self._open = False
            return
        for message in self._decoder.feed(data):
            kind, number = message.get("type"), str(message.get("id"))
            if kind == "job":
                self._scheduler.submit(number, message.get("job"))
            elif kind == "cancel":
                self._scheduler.cancel(number)
            elif kind == "warm" and message.get("runtime") in ("numpy", "torch"):
                self._scheduler.preload(message["runtime"])
            elif kind == "status":
                workers, device = to_plain(all_activity()), self._scheduler.device_holder()
                self._send({"type": "status", "id": number, "workers": workers, "device": device})
            elif kind == "shutdown":
                self._open = False
