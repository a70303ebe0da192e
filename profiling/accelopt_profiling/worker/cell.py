"""Cells: each step runs in one, a PID, network, mount and IPC namespace with a small first process of its own.

A launcher, forked from the warm parent while that is still small, makes cells ahead of time. The first process of a
cell bounds what all its processes together use, and takes them all with it when it ends, however they were started.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from accelopt_profiling.jobs import Limits
from accelopt_profiling.plain import from_plain
from accelopt_profiling.worker import namespaces
from accelopt_profiling.worker.files import keep_only, protect_files
from accelopt_profiling.worker.limits import die_with_parent

#: How the first process of a cell ends when its step used too much.
TOO_MUCH_MEMORY, TOO_MANY_PROCESSES = 41, 42
_WATCH_SECONDS = 0.1
_LOST = OSError("the launcher of cells ended")


@dataclass(frozen=True)
class Isolation:
    """What a host's kernel lets a worker keep from a step; ``note`` says why not all.

    ``processes``: a step sees and leaves behind no process; ``network``: it has none; ``files``: it sees no keys and
    changes no file but its own; ``watched``: its processes' memory and number are bounded together.
    """

    processes: bool = False
    network: bool = False
    files: bool = False
    watched: bool = False
    note: str = ""


def isolation() -> Isolation:
    """Try it out in a process of its own."""
    if os.environ.get("ACCELOPT_NAMESPACES") == "0":
        return Isolation(
            note="ACCELOPT_NAMESPACES=0 is set: steps see the host's network, processes and files"
        )
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with contextlib.suppress(BaseException):
            os.write(writing, json.dumps(_try()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    if not said:
        return Isolation(note="namespaces could not be tried out")
    return from_plain(Isolation, json.loads(said))


def _try() -> dict[str, Any]:
    try:
        if not hasattr(os, "pidfd_open"):
            raise OSError("not Linux")
        os.close(os.pidfd_open(os.getpid()))
        namespaces.become_user_of_own_namespace()
        namespaces.unshare(namespaces.NEW_PIDS)
    except OSError as error:
        note = f"no user namespaces here ({error}): steps see the host's network, processes and files"
        return {"note": note}
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(_furnish(Path(tempfile.gettempdir()))).encode())
        os._exit(0)
    return {"processes": True, **json.loads(os.read(reading, 1 << 16))}


def _furnish(base: Path) -> dict[str, Any]:
    """In the first process of a PID namespace: the other namespaces, as far as the kernel allows."""
    done: dict[str, Any] = {"network": False, "files": False, "note": ""}
    notes: list[str] = []
    done |= {"watched": False, "mounts": False}
    try:
        namespaces.unshare(namespaces.NEW_NETWORK | namespaces.NEW_IPC)
        done["network"] = True
        with contextlib.suppress(OSError):
            namespaces.bring_up_loopback()
    except OSError as error:
        notes.append(f"steps see the host's network ({error})")
    try:
        namespaces.unshare(namespaces.NEW_MOUNTS)
        done["mounts"] = True
        namespaces.keep_mounts_private()
        namespaces.mount_own_processes()
        done["watched"] = True
        protect_files(base)
        done["files"] = True
    except OSError as error:
        notes.append(f"steps see the host's files and can change them ({error})")
    done["note"] = "; ".join(notes)
    return done


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
        namespaces.become_user_of_own_namespace()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.launcher = os.fork()
        if self.launcher == 0:
            self._control.close()
            _launch(theirs, base)
        theirs.close()
        self._ends: dict[int, int] = {}

    def take(self, limits: Limits) -> Cell:
        """The next cell, its first process watching over ``limits``. Raises OSError when there is none."""
        bounds = {"memory": limits.memory_bytes, "processes": limits.processes, "shared": _own_memory("self")}
        self._control.send(json.dumps(bounds).encode())
        while True:
            message = self._hear()
            if "cell" in message:
                return Cell.of(message["cell"], message["furnished"])
            if "failed" in message:
                raise OSError(message["failed"])

    def end_of(self, cell: Cell) -> int:
        """The exit status of a cell that was ended: TOO_MUCH_MEMORY, TOO_MANY_PROCESSES, or no news."""
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


@dataclass(frozen=True)
class _Made:
    """A cell that waits for its bounds on the pipe ``bounds``; ``keeper`` is the process that waits for its end."""

    keeper: int
    pid: int
    bounds: int
    furnished: dict[str, Any]


def _launch(control: socket.socket, base: Path) -> NoReturn:
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
        furnished = _furnish(base)
        pid = int(os.read(outside, 64))
        os.write(ready, json.dumps([pid, furnished]).encode())
        os.close(ready)
        os.close(outside)
        said = os.read(bounds, 1 << 16)
        if said and furnished["watched"]:
            _watch(**json.loads(said))
        while said:
            _reap()
            time.sleep(_WATCH_SECONDS)
    finally:
        os._exit(0)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(memory: int, processes: int, shared: int) -> None:
    """Look at all processes of the cell again and again; ends this one, and so the cell, when they use too much.

    ``shared`` is what a step has in common with the warm parent that it was forked from.
    """
    while True:
        time.sleep(_WATCH_SECONDS)
        _reap()
        pids = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        if len(pids) > processes:
            os._exit(TOO_MANY_PROCESSES)
        used = sum(_own_memory(pid) for pid in pids)
        if used > memory + len(pids) * shared and _exact_memory(pids) > memory + shared:
            os._exit(TOO_MUCH_MEMORY)


def _own_memory(pid: str) -> int:
    """Resident bytes of one process that are no file's; pages shared with the warm parent count."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _exact_memory(pids: list[str]) -> int:
    """Proportional bytes of all processes: each page counts once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += sum(
                int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss_Anon")
            )
    return total
