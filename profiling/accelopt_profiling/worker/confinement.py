"""Confine a step's own process before it runs user code: its folder, user, files, and last its system calls."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_profiling.worker import namespaces
from accelopt_profiling.worker.landlock import DEVICE, LISTING, READING, landlock_version, restrict
from accelopt_profiling.worker.limits import die_with_parent
from accelopt_profiling.worker.readable_places import DEVICES, accelerators
from accelopt_profiling.worker.sandbox import Sandbox
from accelopt_profiling.worker.sandbox_plan import SandboxPlan
from accelopt_profiling.worker.sandbox_root import WRITABLE
from accelopt_profiling.worker.system_call_filter import FilterScope, filter_system_calls, may_filter

#: What a step without a ``/proc`` of its own reads there, besides its own process.
_PROCESSES = (
    "self",
    "cpuinfo",
    "meminfo",
    "stat",
    "loadavg",
    "uptime",
    "version",
    "filesystems",
    "sys",
    "driver",
)


@dataclass(frozen=True)
class Confinement:
    """What a step may use besides what every step does: the folders ``projects`` without ``private``, a ``device``.

    ``passed`` are the folders in them that imports pass through.
    """

    projects: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    device: bool = False


def confine(plan: SandboxPlan, sandbox: Sandbox | None, folder: Path, step: Confinement) -> None:
    """Enter the sandbox, or do without as far as the kernel allows, and give up user and privileges."""
    user = plan.user_of(step.device, [*step.projects, *step.passed])
    prepare_folder(folder, user)
    if sandbox is not None:
        sandbox.enter(folder, plan.places, step.projects, step.private)
    if user is not None:
        namespaces.become(user)
        die_with_parent()  # a change of the user takes it back
    with contextlib.suppress(OSError):  # not Linux
        namespaces.give_up_privileges()
        if (sandbox is None or not sandbox.furnished["files"]) and landlock_version():
            restrict(_rules(plan, step), [str(folder), "/dev/shm"])


def refuse_system_calls(sandbox: Sandbox | None, device: bool) -> None:
    """Refuse what no kernel file has a use for. The last thing before user code runs."""
    if may_filter():
        sockets = sandbox is None or not (sandbox.furnished["network"] and sandbox.furnished["files"])
        signals = sandbox is None and landlock_version() < 6
        with contextlib.suppress(OSError):  # a kernel without; the worker said so in its first message
            filter_system_calls(FilterScope(sockets, signals, device))


def prepare_folder(folder: Path, user: int | None) -> None:
    """Make the folders that a step writes to.

    Another ``user`` may add files beside them, and change no source: it is a group of its own, to which the folder and
    the one above it are open.
    """
    for part in WRITABLE:
        (folder / part).mkdir(exist_ok=True)
        if user is not None:
            os.chown(folder / part, user, user)
    if user is not None:
        os.chown(folder, -1, user)
        folder.chmod(0o1770)
        os.chown(folder.parent, -1, user)
        folder.parent.chmod(0o710)


def _rules(plan: SandboxPlan, step: Confinement) -> Iterator[tuple[str, int]]:
    """Yield what may be read, with the rights, for a process that keeps the host's root."""
    private = set(step.private)
    above = {str(parent) for entry in private for parent in Path(entry).parents}
    for place in plan.places.whole:
        yield place, READING
        yield os.path.realpath(place), READING
    for project in (*plan.places.projects, *step.projects):
        yield from _rules_of_project(project, private, above)
    for name in _PROCESSES:
        yield f"/proc/{name}", READING
    yield "/sys", READING
    for device in (*DEVICES, *accelerators()):
        yield device, DEVICE


def _rules_of_project(folder: str, private: set[str], above: set[str]) -> Iterator[tuple[str, int]]:
    if folder not in above:
        yield folder, READING
        return
    yield folder, LISTING
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.path not in private and not entry.is_symlink():
                if entry.is_dir():
                    yield from _rules_of_project(entry.path, private, above)
                else:
                    yield entry.path, READING
