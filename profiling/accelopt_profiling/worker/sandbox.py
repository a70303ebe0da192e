"""The sandbox of a step: PID, network, mount and IPC namespaces with a small first process of their own.

``sandbox_launcher``, a process forked from the preloaded parent while that is still small, makes them ahead of time.
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
from accelopt_profiling.worker.limits import own_memory
from accelopt_profiling.worker.readable_places import ReadablePlaces
from accelopt_profiling.worker.sandbox_launcher import launch
from accelopt_profiling.worker.sandbox_plan import SandboxPlan
from accelopt_profiling.worker.sandbox_root import move_in

_ENDED = OSError("the launcher of sandboxes ended")


@dataclass
class Sandbox:
    """One sandbox as the preloaded parent sees it. ``pid`` is its first process, by the host's number."""

    pid: int
    furnished: dict[str, Any]
    handle: int
    _root: int
    _spaces: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, pid: int, furnished: dict[str, Any]) -> Sandbox:
        kinds = {"pid": namespaces.NEW_PIDS, "mnt": namespaces.NEW_MOUNTS, "net": namespaces.NEW_NETWORK}
        kinds["ipc"] = namespaces.NEW_IPC
        spaces = {flag: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name, flag in kinds.items()}
        root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
        return cls(pid, furnished, os.pidfd_open(pid), root, spaces)

    def hold_children(self) -> None:
        """Put the children that this process forks from now on into this sandbox's PID namespace."""
        namespaces.join(self._spaces[namespaces.NEW_PIDS], namespaces.NEW_PIDS)

    def enter(self, folder: Path, places: ReadablePlaces, projects: list[str], private: list[str]) -> None:
        """Join, in a child forked into it, its network and mounts, and move into its root
        (``sandbox_root.move_in``)."""
        if self.furnished["network"]:
            namespaces.join(self._spaces[namespaces.NEW_IPC], namespaces.NEW_IPC)
            namespaces.join(self._spaces[namespaces.NEW_NETWORK], namespaces.NEW_NETWORK)
        if self.furnished["mounts"]:
            namespaces.join(self._spaces[namespaces.NEW_MOUNTS], namespaces.NEW_MOUNTS)
            os.fchdir(self._root)
            os.chroot(".")  # joining leaves a chroot that the worker was started in
        if self.furnished["files"]:
            move_in(folder, places, projects, private)

    def end(self, seconds: float = 2.0) -> None:
        """Kill all its processes and wait until its first process has ended, at most ``seconds``."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        select.select([self.handle], [], [], seconds)
        for descriptor in (self.handle, self._root, *self._spaces.values()):
            os.close(descriptor)


class SandboxLauncher:
    """The preloaded parent's side of the launcher, which it forks.

    Only for hosts whose ``Isolation`` has ``processes``: where the kernel lets a process enter a user namespace and
    then allows nothing in it, the process could not even write files any more.

    Raises:
        OSError: the kernel refuses all the same.
    """

    def __init__(self, plan: SandboxPlan) -> None:
        namespaces.allow_namespaces(plan.user)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.launcher = os.fork()
        if self.launcher == 0:
            self._control.close()
            launch(theirs, plan)
        theirs.close()
        self._ends: dict[int, int] = {}

    def take(self, limits: Limits, folder: Path) -> Sandbox:
        """Return the next sandbox, whose first process watches over ``limits`` and the job's ``folder``.

        Raises:
            OSError: there is none.
        """
        limits_of_sandbox = {
            "memory": limits.memory_bytes, "processes": limits.processes, "written": limits.written_bytes,
            "shared": own_memory("self"), "folder": str(folder),
        }  # fmt: skip
        self._control.send(json.dumps(limits_of_sandbox).encode())
        while True:
            message = self._read()
            if "sandbox" in message:
                return Sandbox.of(message["sandbox"], message["furnished"])
            if "failed" in message:
                raise OSError(message["failed"])

    def end_of(self, sandbox: Sandbox) -> int:
        """Return the exit status of a sandbox that was ended: ``limits.TOO_MUCH_MEMORY`` and so on, or another."""
        while sandbox.pid not in self._ends:
            self._read()
        return self._ends.pop(sandbox.pid)

    def _read(self) -> dict[str, Any]:
        data = self._control.recv(1 << 16)
        if not data:
            raise _ENDED
        message: dict[str, Any] = json.loads(data)
        if "ended" in message:
            self._ends[message["ended"]] = message["status"]
        return message
