"""Find out by trying, in a process of its own, which parts of a sandbox the host's kernel allows, and set them up."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from accelopt_profiling.worker import namespaces
from accelopt_profiling.worker.landlock import landlock_version
from accelopt_profiling.worker.limits import SOCKET_BYTES
from accelopt_profiling.worker.sandbox_plan import SandboxPlan
from accelopt_profiling.worker.sandbox_root import lay_out, move_in
from accelopt_profiling.worker.system_call_filter import FilterScope, filter_system_calls

_NO_LINUX = (
    "this system has no namespaces: steps see the host's network, processes and files, can end this user's processes, "
    "and memory is not bounded for all of a step; time, output and the environment's variables are"
)


@dataclass(frozen=True)
class Isolation:
    """The parts of a sandbox that hold on a host.

    ``note`` says what does not, and why.

    ``processes``: a step neither reaches other processes nor leaves any behind; ``network``: it has none; ``files``: it
    reads what ``readable_places`` lists only and changes no file but its own; ``watched``: the memory and number of its
    processes are bounded together; ``calls``: system calls that no kernel has a use for are refused; ``user``: it does
    not run as root.
    """

    processes: bool = False
    network: bool = False
    files: bool = False
    watched: bool = False
    note: str = ""
    calls: bool = False
    user: bool = False

    @property
    def complete(self) -> bool:
        """Whether every part holds."""
        return all((self.processes, self.network, self.files, self.watched, self.calls, self.user))


def probe_isolation(plan: SandboxPlan) -> tuple[Isolation, SandboxPlan]:
    """Try every part.

    Returns what holds, and the plan with a user that steps can run as.

    ``ACCELOPT_NAMESPACES=0`` switches namespaces off.
    """
    if sys.platform != "linux":
        return Isolation(note=_NO_LINUX, user=plan.user is None), plan.as_own_user()
    off = os.environ.get("ACCELOPT_NAMESPACES") == "0"
    tried: dict[str, Any] = {}
    for attempt in (plan, plan.as_own_user()):
        plan = attempt
        tried = {"why": "ACCELOPT_NAMESPACES=0 is set"} if off else _result_of_child(partial(_try, plan))
        if plan.user is None or (tried["user"] if "user" in tried else _can_run_as(plan)):
            break
    calls = bool(_result_of_child(_try_filter).get("calls"))
    spaces = bool(tried.get("processes"))
    isolation = Isolation(
        processes=spaces,
        network=bool(tried.get("network")) or calls,
        files=bool(tried.get("files")) or landlock_version() > 0,
        watched=bool(tried.get("watched")),
        calls=calls,
        user=plan.user is not None or os.getuid() != 0,
    )
    return replace(isolation, note=_note(isolation, str(tried.get("why", "")))), plan


def _note(isolation: Isolation, why: str) -> str:
    missing = []
    if not isolation.processes:
        held = isolation.calls or landlock_version() >= 6
        missing.append("steps see this machine's processes" + ("" if held else " and can end this user's"))
    if not isolation.network:
        missing.append("steps see the host's network")
    if not isolation.files:
        missing.append("steps see the host's files and can change them")
    if not isolation.watched:
        missing.append("memory is bounded for each process, not for all of a step")
    if not isolation.calls:
        missing.append("system calls are not filtered")
    if not isolation.user:
        missing.append("steps run as root, without its privileges")
    return f"{why}: {', '.join(missing)}".removeprefix(": ") if missing else ""


def _result_of_child(function: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what ``function`` returns in a child process.

    Where that ended without a result, what is known of it.
    """
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
    try:
        answered: dict[str, Any] = json.loads(result)
    except ValueError:
        return {"why": "namespaces could not be tried out"}
    return answered


def _try(plan: SandboxPlan) -> dict[str, Any]:
    try:
        os.close(os.pidfd_open(os.getpid()))
        os.close(os.open("/proc/self/ns/pid", os.O_RDONLY))
        namespaces.allow_namespaces(plan.user)
        namespaces.unshare(namespaces.NEW_PIDS)
    except (OSError, AttributeError) as error:
        return {"why": f"no user namespaces here ({error})"}
    return {"processes": True, **_result_of_child(lambda: _try_to_move_in(plan))}


def _try_to_move_in(plan: SandboxPlan) -> dict[str, Any]:
    """In the first process of a PID namespace: make a sandbox and see whether its user can use Python there."""
    furnished = furnish(plan)
    if furnished["files"]:
        folder = plan.base / "probe"
        folder.mkdir(exist_ok=True)
        try:
            move_in(folder, plan.places, [], [])
        except OSError as error:
            furnished |= {"files": False, "why": str(error)}
    furnished.pop("shared_memory", None)
    return {**furnished, "user": plan.user is None or _can_run_as(plan)}


def _can_run_as(plan: SandboxPlan) -> bool:
    """Return whether the plan's user can read what steps import."""
    return bool(_result_of_child(lambda: _read_as(plan)).get("reads"))


def _read_as(plan: SandboxPlan) -> dict[str, Any]:
    if plan.user is not None:
        namespaces.become(plan.user)
    needed = [os.__file__, *(spec.origin for name in ("numpy",) if (spec := find_spec(name)) and spec.origin)]
    return {"reads": all(os.access(file, os.R_OK) for file in needed) and os.access(sys.executable, os.X_OK)}


def _try_filter() -> dict[str, Any]:
    namespaces.give_up_privileges()
    filter_system_calls(FilterScope())
    return {"calls": True}


def furnish(plan: SandboxPlan) -> dict[str, Any]:
    """Create the other namespaces in the first process of a PID namespace, as far as the kernel allows.

    Returns which there are: "network" (with IPC), "mounts", "watched" (its own ``/proc``), "files" (a root of its own
    is laid out, with "shared_memory", a descriptor), and "why" the rest is not.
    """
    done: dict[str, Any] = {"network": False, "mounts": False, "watched": False, "files": False}
    why: list[str] = []
    try:
        namespaces.unshare(namespaces.NEW_NETWORK | namespaces.NEW_IPC)
        done["network"] = True
        with contextlib.suppress(OSError):
            namespaces.bring_up_loopback()
            namespaces.bound_connections(SOCKET_BYTES // 2)
    except OSError as error:
        why.append(str(error))
    try:
        namespaces.unshare(namespaces.NEW_MOUNTS)
        done["mounts"] = True
        namespaces.keep_mounts_private()
        namespaces.mount_own_processes()
        done["watched"] = True
        user = plan.user if plan.user is not None else os.geteuid()
        done["shared_memory"] = lay_out(plan.base, plan.places, user)
        done["files"] = True
    except OSError as error:
        why.append(str(error))
    return {**done, "why": "; ".join(why)}
