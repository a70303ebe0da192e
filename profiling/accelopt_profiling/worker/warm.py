"""A warm parent: a process that has imported a runtime's packages, executed nothing, and forks one child per step.

It talks to the supervisor over a socket: requests carry the step and the descriptors of its pipes, answers say which
process was started and how it ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
from pathlib import Path
from typing import Any, NoReturn

from accelopt_profiling.jobs import Limits, Runtime, Source
from accelopt_profiling.plain import from_plain
from accelopt_profiling.worker.child import run_step
from accelopt_profiling.worker.limits import adopt_orphans, die_with_parent

#: What each runtime imports ahead of time: needed packages, then ones that are imported if they are there.
_NEEDED: dict[Runtime, tuple[str, ...]] = {"numpy": ("numpy",), "torch": ("numpy", "torch", "triton")}
_WANTED: dict[Runtime, tuple[str, ...]] = {
    "numpy": ("ml_dtypes", "accelopt_profiling.nki.profile", "accelopt_profiling.gate.steps"),
    "torch": ("accelopt_profiling.triton.profile", "accelopt_profiling.gate.steps"),
}
LARGEST_REQUEST = 1 << 16


def serve(control: socket.socket, runtime: Runtime) -> NoReturn:
    """Import, report, then fork a child per request until the supervisor closes the socket."""
    die_with_parent()
    adopt_orphans()
    os.setsid()
    missing = _import_all(runtime)
    gc.collect()
    gc.freeze()  # children share these pages as long as the collector leaves them alone
    _send(control, {"ready": True, "missing": missing})
    _Warm(control).loop()


def _import_all(runtime: Runtime) -> str | None:
    for name in _NEEDED[runtime]:
        try:
            importlib.import_module(name)
        except Exception as error:
            return f"{name}: {error}" if not isinstance(error, ModuleNotFoundError) else str(error.name)
    for name in _WANTED[runtime]:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    return None


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    control.send(json.dumps(message).encode())


class _Warm:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, str] = {}  # pid -> token
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)

    def loop(self) -> NoReturn:
        selector = selectors.DefaultSelector()
        selector.register(self._control, selectors.EVENT_READ)
        selector.register(self._wake_read, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is self._control:
                    self._request()
                else:
                    with contextlib.suppress(BlockingIOError):
                        self._wake_read.recv(4096)
            self._reap()

    def _request(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._control, LARGEST_REQUEST, 2)
        if not data:
            self._end()
        request = json.loads(data)
        frames, output = descriptors
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            body = json.loads(Path(request["request"]).read_text(encoding="utf-8"))
            run_step(
                body["name"], body["params"], Path(body["folder"]), from_plain(Source, body["source"]),
                from_plain(Limits, body["limits"]), frames, output, body["background"],
            )  # fmt: skip
        os.close(frames)
        os.close(output)
        self._children[pid] = request["token"]
        _send(self._control, {"started": request["token"], "pid": pid})

    def _reap(self) -> None:
        ended = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            token = self._children.pop(pid, None)
            if token is not None:
                ended = True
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
                _send(self._control, {"ended": token, "status": os.waitstatus_to_exitcode(status)})
        if ended:
            self._sweep()

    def _sweep(self) -> None:
        """End adopted processes: whatever a step left behind outside its own session."""
        listing = Path(f"/proc/self/task/{os.getpid()}/children")
        with contextlib.suppress(OSError, ValueError):
            for pid in map(int, listing.read_text().split()):
                if pid not in self._children:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)

    def _end(self) -> NoReturn:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self._sweep()
        os._exit(0)
