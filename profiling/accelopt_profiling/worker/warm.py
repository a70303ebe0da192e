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
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.worker.bounds import TOO_MANY_PROCESSES, TOO_MUCH_MEMORY, TOO_MUCH_WRITTEN
from accelopt_profiling.worker.cell import Cell, Cells
from accelopt_profiling.worker.child import run_step
from accelopt_profiling.worker.frames import encode
from accelopt_profiling.worker.limits import adopt_orphans, die_with_parent
from accelopt_profiling.worker.step import host_error

#: What each runtime imports ahead of time: needed packages, then ones that are imported if they are there.
_NEEDED: dict[Runtime, tuple[str, ...]] = {"numpy": ("numpy",), "torch": ("numpy", "torch", "triton")}
_WANTED: dict[Runtime, tuple[str, ...]] = {
    "numpy": ("ml_dtypes", "accelopt_profiling.nki.profile", "accelopt_profiling.gate.steps.table"),
    "torch": ("accelopt_profiling.triton.profile", "accelopt_profiling.gate.steps.table"),
}
_WHY = {TOO_MUCH_MEMORY: "memory", TOO_MANY_PROCESSES: "processes", TOO_MUCH_WRITTEN: "written"}
LARGEST_TOKEN = 64


def serve(control: socket.socket, runtime: Runtime, base: Path, with_cells: bool) -> NoReturn:
    """Import, report, then fork a child per request until the supervisor closes the socket."""
    cells = Cells(base) if with_cells else None
    die_with_parent()
    adopt_orphans()
    os.setpgid(0, 0)
    missing = _import_all(runtime)
    gc.collect()
    gc.freeze()  # children share these pages as long as the collector leaves them alone
    _send(control, {"ready": True, "missing": missing})
    _Warm(control, cells).loop()


def _import_all(runtime: Runtime) -> str | None:
    for name in _NEEDED[runtime]:
        try:
            importlib.import_module(name)
        except Exception as error:
            return f"{name}: {error}" if not isinstance(error, ModuleNotFoundError) else str(error.name)
    for name in _WANTED[runtime]:
        with contextlib.suppress(Exception):  # the step that needs it will say what is wrong with it
            importlib.import_module(name)
    return None


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    control.send(json.dumps(message).encode())


class _Warm:
    def __init__(self, control: socket.socket, cells: Cells | None) -> None:
        self._control, self._cells = control, cells
        self._children: dict[int, tuple[str, Cell | None]] = {}  # pid -> token and cell
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
        token, descriptors, _, _ = socket.recv_fds(self._control, LARGEST_TOKEN, 3)
        if not token:
            self._end()
        frames, output, file = descriptors
        with os.fdopen(file, "rb") as request:
            request.seek(0)
            body = json.load(request)
        self._start(token.decode(), body, frames, output)
        os.close(frames)
        os.close(output)

    def _start(self, token: str, body: dict[str, Any], frames: int, output: int) -> None:
        limits = from_plain(Limits, body["limits"])
        cell = None
        try:
            if self._cells is not None:
                cell = self._cells.take(limits)
                cell.hold_children()
            pid = os.fork()
        except OSError as error:
            if cell is not None:
                cell.end()
            why = host_error(f"The step {body['name']} got no process of its own on the host", error)
            os.write(frames, encode({"type": "error", "error": to_plain(why)}))
            _send(self._control, {"ended": token, "status": 1})
            return
        if pid == 0:
            signal.set_wakeup_fd(-1)
            run_step(
                body["name"], body["params"], Path(body["folder"]), from_plain(Source, body["source"]),
                limits, frames, output, body["background"], body["device"], cell,
            )  # fmt: skip
        self._children[pid] = token, cell
        _send(self._control, {"started": token, "pid": pid})

    def _reap(self) -> None:
        ended = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if self._cells is not None and pid == self._cells.launcher:
                self._end()  # every cell ended with it; the next request starts all of this anew
            if pid not in self._children:
                ended = True  # an adopted one; what it had started may be adopted by now
                continue
            token, cell = self._children.pop(pid)
            why = ""
            if cell is not None and self._cells is not None:
                cell.end()
                why = _WHY.get(self._cells.end_of(cell), "")
            else:
                ended = True
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            _send(self._control, {"ended": token, "status": os.waitstatus_to_exitcode(status), "why": why})
        if ended:
            self._sweep()

    def _sweep(self) -> None:
        """End adopted processes: whatever a step left behind outside its own session."""
        listing = Path(f"/proc/self/task/{os.getpid()}/children")
        with contextlib.suppress(OSError, ValueError):
            for pid in map(int, listing.read_text().split()):
                if pid not in self._children and (self._cells is None or pid != self._cells.launcher):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)

    def _end(self) -> NoReturn:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self._sweep()
        os._exit(0)
