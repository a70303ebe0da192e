"""Find out by trying, in a process of its own, which parts of a sandbox the host's kernel allows, and set them up."""

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
from accelopt_profiling.worker.sandbox_files import protect_files

_UNPROTECTED = "steps see the host's network, processes and files, and can end this user's processes"


@dataclass(frozen=True)
class Isolation:
    """The parts of a sandbox that hold on a host; ``note`` says why not all do.

    ``processes``: a step neither reaches other processes nor leaves any behind; ``network``: it has none; ``files``: it
    sees no keys and changes no file but its own; ``watched``: the memory and number of its processes are bounded
    together.
    """

    processes: bool = False
    network: bool = False
    files: bool = False
    watched: bool = False
    note: str = ""


def probe_isolation() -> Isolation:
    """Try every part. ``ACCELOPT_NAMESPACES=0`` switches namespaces off."""
    if os.environ.get("ACCELOPT_NAMESPACES") == "0":
        return Isolation(note=f"ACCELOPT_NAMESPACES=0 is set: {_UNPROTECTED}")
    try:
        return from_plain(Isolation, _result_of_child(_try))
    except ValueError:
        return Isolation(note="namespaces could not be tried out")


def _result_of_child(function: Callable[[], dict[str, Any]]) -> Any:
    """Return what ``function`` returns in a child process. Raises ValueError: the child ended without a result."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with contextlib.suppress(BaseException):
            os.write(writing, json.dumps(function()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        result = answer.read()
    os.waitpid(child, 0)
    return json.loads(result)


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
    return {"processes": True, **_result_of_child(lambda: furnish(Path(tempfile.gettempdir())))}


def furnish(base: Path) -> dict[str, Any]:
    """In the first process of a PID namespace: create the other namespaces, as far as the kernel allows.

    Returns which there are: "network" (with IPC), "mounts", "watched" (its own ``/proc``), "files" (``base`` is all
    that can be changed), and a "note" about the rest.
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
