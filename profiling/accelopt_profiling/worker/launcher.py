"""The launcher: a small process that makes cells ahead of time, hands them out, and tells how they ended.

Each cell has a keeper, which waits for the end of the cell's first process, and that first process, which furnishes the
cell, watches over its bounds, and takes everything in the cell with it when it ends.
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
from pathlib import Path
from typing import Any, NoReturn

from accelopt_profiling.worker import namespaces
from accelopt_profiling.worker.bounds import WATCH_SECONDS, watch
from accelopt_profiling.worker.isolation import furnish
from accelopt_profiling.worker.limits import die_with_parent


@dataclass(frozen=True)
class _Made:
    """A cell that waits for its bounds on the pipe ``bounds``; ``keeper`` is the process that waits for its end."""

    keeper: int
    pid: int
    bounds: int
    furnished: dict[str, Any]


def launch(control: socket.socket, base: Path) -> NoReturn:
    """The launcher: keeps one cell ready, hands it out, and tells how cells ended."""
    die_with_parent()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    made: dict[int, int] = {}  # keeper -> first process
    try:
        spare = _try_to_make(base, made)
        while True:
            ready, _, _ = select.select([control.fileno(), reading], [], [])
            if reading in ready:
                os.read(reading, 4096)
            if control.fileno() in ready:
                bounds = control.recv(1 << 16)
                if not bounds:
                    break
                if isinstance(spare, _Made):
                    os.write(spare.bounds, bounds)
                    os.close(spare.bounds)
                    message: dict[str, Any] = {"cell": spare.pid, "furnished": spare.furnished}
                else:
                    message = {"failed": str(spare)}
                control.send(json.dumps(message).encode())
                spare = _try_to_make(base, made)
            _tell_ends(control, made)
    finally:
        os._exit(0)


def _tell_ends(control: socket.socket, made: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            keeper, status = os.waitpid(-1, os.WNOHANG)
            if keeper == 0:
                return
            if keeper in made:
                message = {"ended": made.pop(keeper), "status": os.waitstatus_to_exitcode(status)}
                control.send(json.dumps(message).encode())


def _try_to_make(base: Path, made: dict[int, int]) -> _Made | OSError:
    try:
        cell = _make(base)
    except OSError as error:
        return error
    made[cell.keeper] = cell.pid
    return cell


def _make(base: Path) -> _Made:
    """Fork a keeper, which forks the first process of a new cell; wait until its namespaces are furnished."""
    bounds_read, bounds_write = os.pipe()
    ready_read, ready_write = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        _keep(bounds_read, ready_write, base)
    os.close(bounds_read)
    os.close(ready_write)
    with os.fdopen(ready_read, "rb") as answer:
        said = answer.read()
    if not said:
        os.close(bounds_write)
        raise OSError("the first process of a cell ended")
    pid, furnished = json.loads(said)
    return _Made(keeper, pid, bounds_write, furnished)


def _keep(bounds: int, ready: int, base: Path) -> NoReturn:
    """The keeper of one cell: its first process's parent, which says how that ended by ending the same way."""
    status = 1
    try:
        die_with_parent()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        kept = sorted((bounds, ready))
        os.closerange(3, kept[0])
        os.closerange(kept[0] + 1, kept[1])
        os.closerange(kept[1] + 1, 4096)
        namespaces.unshare(namespaces.NEW_PIDS)
        inside, outside = os.pipe()
        first = os.fork()
        if first == 0:
            os.close(outside)
            _be_first(bounds, inside, ready, base)
        os.close(bounds)
        os.close(ready)
        os.close(inside)
        os.write(outside, str(first).encode())
        os.close(outside)
        _, ended = os.waitpid(first, 0)
        status = max(0, os.waitstatus_to_exitcode(ended))
    finally:
        os._exit(status)


def _be_first(bounds: int, outside: int, ready: int, base: Path) -> NoReturn:
    """The first process of a cell: furnish it, then reap orphans and watch over the bounds until it is killed.

    ``outside`` tells the process number by which the rest of the host knows it.
    """
    try:
        die_with_parent()
        furnished = furnish(base)
        pid = int(os.read(outside, 64))
        os.write(ready, json.dumps([pid, furnished]).encode())
        os.close(ready)
        os.close(outside)
        said = os.read(bounds, 1 << 16)
        if said and furnished["watched"]:
            watch(**json.loads(said), reap=_reap)
        while said:
            _reap()
            time.sleep(WATCH_SECONDS)
    finally:
        os._exit(0)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
