"""What a host's kernel lets a worker keep from a step, found by trying it out in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.plain import from_plain
from accelopt_profiling.worker import namespaces
from accelopt_profiling.worker.files import protect_files

_UNPROTECTED = "steps see the host's network, processes and files, and can end this user's processes"


@dataclass(frozen=True)
class Isolation:
    """``note`` says why not all of the rest holds.

    ``processes``: a step sees and leaves behind no process; ``network``: it has none; ``files``: it sees no keys and
    changes no file but its own; ``watched``: its processes' memory and number are bounded together.
    """

    processes: bool = False
    network: bool = False
    files: bool = False
    watched: bool = False
    note: str = ""


def isolation() -> Isolation:
    """Try it out. ``ACCELOPT_NAMESPACES=0`` switches namespaces off."""
    if os.environ.get("ACCELOPT_NAMESPACES") == "0":
        return Isolation(note=f"ACCELOPT_NAMESPACES=0 is set: {_UNPROTECTED}")
    try:
        return from_plain(Isolation, _said_by_child(_try))
    except ValueError:
        return Isolation(note="namespaces could not be tried out")


def _said_by_child(tell: Callable[[], dict[str, Any]]) -> Any:
    """What ``tell`` returns in a child process. Raises ValueError: the child ended without a word."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with contextlib.suppress(BaseException):
            os.write(writing, json.dumps(tell()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return json.loads(said)


def _try() -> dict[str, Any]:
    try:
        if not hasattr(os, "pidfd_open"):
            raise OSError("not Linux")
        os.close(os.pidfd_open(os.getpid()))
        os.close(os.open("/proc/self/ns/pid", os.O_RDONLY))
        namespaces.allow_namespaces()
        namespaces.unshare(namespaces.NEW_PIDS)
    except OSError as error:
        return {"note": f"no user namespaces here ({error}): {_UNPROTECTED}"}
    return {"processes": True, **_said_by_child(lambda: furnish(Path(tempfile.gettempdir())))}


def furnish(base: Path) -> dict[str, Any]:
    """In the first process of a PID namespace: give it the other namespaces, as far as the kernel allows.

    Returns which it got: "network" (with IPC), "mounts", "watched" (its own ``/proc``), "files" (``base`` is all that
    can be changed), and a "note" about the rest.
    """
    done: dict[str, Any] = {"network": False, "mounts": False, "watched": False, "files": False}
    notes: list[str] = []
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
    return {**done, "note": "; ".join(notes)}
