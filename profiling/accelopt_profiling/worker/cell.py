"""Cells: each step runs in one, a PID, network, mount and IPC namespace with a small first process of its own.

The launcher, forked from the warm parent while that is still small, makes cells ahead of time.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import Limits
from accelopt_profiling.worker import namespaces
from accelopt_profiling.worker.bounds import own_memory
from accelopt_profiling.worker.files import keep_only
from accelopt_profiling.worker.launcher import launch

_LOST = OSError("the launcher of cells ended")


@dataclass
class Cell:
    """One cell as the warm parent holds it. ``pid`` is its first process, seen from outside."""

    pid: int
    furnished: dict[str, Any]
    handle: int
    _spaces: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, pid: int, furnished: dict[str, Any]) -> Cell:
        kinds = {"pid": namespaces.NEW_PIDS, "mnt": namespaces.NEW_MOUNTS, "net": namespaces.NEW_NETWORK}
        kinds["ipc"] = namespaces.NEW_IPC
        spaces = {flag: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name, flag in kinds.items()}
        return cls(pid, furnished, os.pidfd_open(pid), spaces)

    def hold_children(self) -> None:
        """Children forked from now on, until another cell is told the same, belong to this cell's processes."""
        namespaces.join(self._spaces[namespaces.NEW_PIDS], namespaces.NEW_PIDS)

    def enter(self, folder: Path) -> None:
        """In a child of the cell: take on its network and files, then give up every privilege."""
        if self.furnished["network"]:
            namespaces.join(self._spaces[namespaces.NEW_IPC], namespaces.NEW_IPC)
            namespaces.join(self._spaces[namespaces.NEW_NETWORK], namespaces.NEW_NETWORK)
        if self.furnished["mounts"]:
            namespaces.join(self._spaces[namespaces.NEW_MOUNTS], namespaces.NEW_MOUNTS)
        if self.furnished["files"]:
            keep_only(folder)
        namespaces.give_up_privileges()

    def end(self, seconds: float = 2.0) -> None:
        """Kill everything in the cell and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        select.select([self.handle], [], [], seconds)
        for descriptor in (self.handle, *self._spaces.values()):
            os.close(descriptor)


class Cells:
    """The warm parent's side of the launcher, for hosts whose ``isolation`` has ``processes``: a process that enters a
    user namespace where the kernel then allows nothing in it could not even write files any more.

    Raises:
        OSError: the kernel refuses all the same.
    """

    def __init__(self, base: Path) -> None:
        namespaces.allow_namespaces()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.launcher = os.fork()
        if self.launcher == 0:
            self._control.close()
            launch(theirs, base)
        theirs.close()
        self._ends: dict[int, int] = {}

    def take(self, limits: Limits) -> Cell:
        """The next cell, its first process watching over ``limits``. Raises OSError when there is none."""
        bounds = {
            "memory": limits.memory_bytes, "processes": limits.processes, "written": limits.written_bytes,
            "shared": own_memory("self"),
        }  # fmt: skip
        self._control.send(json.dumps(bounds).encode())
        while True:
            message = self._hear()
            if "cell" in message:
                return Cell.of(message["cell"], message["furnished"])
            if "failed" in message:
                raise OSError(message["failed"])

    def end_of(self, cell: Cell) -> int:
        """The exit status of a cell that was ended: a constant of ``bounds``, or no news."""
        while cell.pid not in self._ends:
            self._hear()
        return self._ends.pop(cell.pid)

    def _hear(self) -> dict[str, Any]:
        data = self._control.recv(1 << 16)
        if not data:
            raise _LOST
        message: dict[str, Any] = json.loads(data)
        if "ended" in message:
            self._ends[message["ended"]] = message["status"]
        return message
