"""The launcher: a small process that makes sandboxes ahead of time, hands them out, and reports how they ended.

Each sandbox has two processes besides its step. The first process of its PID namespace sets up the other namespaces,
watches over the limits, and ends every process in the sandbox when it ends. Its parent outside, the keeper, waits for
that end and passes on the exit status.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from accelopt_profiling.worker import namespaces
from accelopt_profiling.worker.isolation import furnish
from accelopt_profiling.worker.limits import WATCH_SECONDS, die_with_parent, watch
from accelopt_profiling.worker.sandbox_plan import SandboxPlan


@dataclass(frozen=True)
class _SpareSandbox:
    """A sandbox that waits for its limits on the pipe ``limits``.

    ``keeper`` is the process that waits for its end.
    """

    keeper: int
    pid: int
    limits: int
    furnished: dict[str, Any]


def launch(control: socket.socket, plan: SandboxPlan) -> NoReturn:
    """Keep one sandbox ready, hand it out on request, and report how sandboxes ended, until ``control`` is closed."""
    die_with_parent()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    sandboxes: dict[int, int] = {}  # keeper -> first process
    try:
        spare = _try_to_make(plan, sandboxes)
        while True:
            ready, _, _ = select.select([control.fileno(), reading], [], [])
            if reading in ready:
                os.read(reading, 4096)
            if control.fileno() in ready:
                limits = control.recv(1 << 16)
                if not limits:
                    break
                if isinstance(spare, _SpareSandbox):
                    os.write(spare.limits, limits)
                    os.close(spare.limits)
                    message: dict[str, Any] = {"sandbox": spare.pid, "furnished": spare.furnished}
                else:
                    message = {"failed": str(spare)}
                control.send(json.dumps(message).encode())
                spare = _try_to_make(plan, sandboxes)
            _report_ends(control, sandboxes)
    finally:
        os._exit(0)


def _report_ends(control: socket.socket, sandboxes: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            keeper, status = os.waitpid(-1, os.WNOHANG)
            if keeper == 0:
                return
            if keeper in sandboxes:
                message = {"ended": sandboxes.pop(keeper), "status": os.waitstatus_to_exitcode(status)}
                control.send(json.dumps(message).encode())


def _try_to_make(plan: SandboxPlan, sandboxes: dict[int, int]) -> _SpareSandbox | OSError:
    try:
        sandbox = _make(plan)
    except OSError as error:
        return error
    sandboxes[sandbox.keeper] = sandbox.pid
    return sandbox


def _make(plan: SandboxPlan) -> _SpareSandbox:
    """Fork a keeper, which forks the first process of a new sandbox. Wait until its namespaces are set up."""
    limits_read, limits_write = os.pipe()
    ready_read, ready_write = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        _keep(limits_read, ready_write, plan)
    os.close(limits_read)
    os.close(ready_write)
    with os.fdopen(ready_read, "rb") as pipe:
        answer = pipe.read()
    if not answer:
        os.close(limits_write)
        raise OSError("the first process of a sandbox ended")
    pid, furnished = json.loads(answer)
    return _SpareSandbox(keeper, pid, limits_write, furnished)


def _keep(limits: int, ready: int, plan: SandboxPlan) -> NoReturn:
    """Fork the first process of a sandbox, wait for its end, and end with the same status."""
    status = 1
    try:
        die_with_parent()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        descriptors = sorted((limits, ready))
        os.closerange(3, descriptors[0])
        os.closerange(descriptors[0] + 1, descriptors[1])
        os.closerange(descriptors[1] + 1, 4096)
        namespaces.unshare(namespaces.NEW_PIDS)
        inside, outside = os.pipe()
        first = os.fork()
        if first == 0:
            os.close(outside)
            _be_first(limits, inside, ready, plan)
        os.close(limits)
        os.close(ready)
        os.close(inside)
        os.write(outside, str(first).encode())
        os.close(outside)
        _, ended = os.waitpid(first, 0)
        status = max(0, os.waitstatus_to_exitcode(ended))
    finally:
        os._exit(status)


def _be_first(limits: int, outside: int, ready: int, plan: SandboxPlan) -> NoReturn:
    """Set up the sandbox, then reap orphans and watch over the limits until this process is killed.

    The pipe ``outside`` brings the number by which the host knows this process.
    """
    try:
        die_with_parent()
        furnished = furnish(plan)
        shared_memory = furnished.pop("shared_memory", None)
        pid = int(os.read(outside, 64))
        os.write(ready, json.dumps([pid, furnished]).encode())
        os.close(ready)
        os.close(outside)
        answer = os.read(limits, 1 << 16)
        if answer and furnished["watched"]:
            watch(**json.loads(answer), shared_memory=shared_memory, reap=_reap)
        while answer:
            _reap()
            time.sleep(WATCH_SECONDS)
    finally:
        os._exit(0)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
