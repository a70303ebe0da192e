"""Give a step a root of its own: an empty one, in which only what it needs of the host's files is mounted, read-only.

The first process of a sandbox lays the root out ahead of time (``lay_out``); the step adds its job's folder and the
project's, and moves in (``move_in``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from accelopt_profiling.worker import namespaces
from accelopt_profiling.worker.readable_places import DEVICES, ReadablePlaces, accelerators

#: Through these root without any privilege could change or end the whole machine.
_KERNEL_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs")
_SHARED_MEMORY_MEBIBYTES = 2048
#: The folders of a job that a step writes to.
WRITABLE = ("home", "tmp", "work")


def staging_folder(base: Path) -> Path:
    """Return the folder that the root is laid out in, below ``base``, the worker's folder of jobs."""
    return base / "root"


def lay_out(base: Path, places: ReadablePlaces, user: int) -> int:
    """Mount, in a new mount namespace, what every step reads.

    ``user`` is whom a step runs as.

    Returns a descriptor of the shared memory's folder. Raises OSError: the kernel is older than 5.12 or refuses.
    """
    root = staging_folder(base)
    root.mkdir(exist_ok=True)
    namespaces.mount_empty(str(root), mebibytes=16)
    for place in (*places.whole, *places.projects):
        _show(root, place)
    for folder in ("proc", "sys", "dev/shm", "tmp", "run", "home", "root", "etc", "var/tmp"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    group = f"step:x:{user}:"
    (root / "etc/passwd").write_text(f"step:x:{user}:{user}::/nonexistent:/bin/sh\n")
    (root / "etc/group").write_text(f"{group}\n")
    for device in (*DEVICES, *accelerators()):
        _show(root, device)
    for name, target in {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}.items():
        (root / "dev" / name).symlink_to(f"/proc/self/fd{target}")
    namespaces.mount_empty(str(root / "dev/shm"), _SHARED_MEMORY_MEBIBYTES, mode=0o1777)
    namespaces.bind("/sys", str(root / "sys"))
    namespaces.mount_own_processes(str(root / "proc"))
    for name in _KERNEL_SETTINGS:
        setting = root / "proc" / name
        if setting.exists():  # a mount of its own stays read-only when ``/proc`` becomes writable
            namespaces.bind(str(setting), str(setting))
    return os.open(root / "dev/shm", os.O_PATH | os.O_DIRECTORY)


def move_in(folder: Path, places: ReadablePlaces, projects: Iterable[str], private: Iterable[str]) -> None:
    """Add the job's ``folder`` and the ``projects``, of which the entries ``private`` stay hidden; make all but the
    folder read-only; and change the root. The source files of the job are read-only too.
    """
    root = staging_folder(folder.parent)
    for project in projects:
        _show(root, project)
        for place in places.whole:
            if place.startswith(f"{project}/"):
                _show(root, place)
    for entry in private:
        _hide(root, entry, [place for place in places.whole if f"{place}/".startswith(f"{entry}/")])
    inside = root / folder.relative_to("/")
    inside.mkdir(parents=True, exist_ok=True)
    namespaces.bind(str(folder), str(inside))
    sources = inside / "src"
    if sources.is_dir():
        namespaces.bind(str(sources), str(sources))
    namespaces.make_read_only(str(root))
    for writable in (inside, root / "dev/shm", root / "proc"):
        namespaces.make_writable(str(writable))
    namespaces.change_root(str(root))


def _show(root: Path, place: str) -> None:
    """Show a file or folder of the host at its own path.

    A link stays a link. What is not there is passed over.
    """
    source, target = Path(place), root / place.lstrip("/")
    if source.is_symlink() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_symlink():
            target.symlink_to(os.readlink(source))
        return
    if not source.exists():
        return
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    namespaces.bind(place, str(target))


def _hide(root: Path, entry: str, visible: Iterable[str]) -> None:
    """Cover an entry of a project that is shown, but for the places below it that are ``visible`` by themselves."""
    target = root / entry.lstrip("/")
    if entry in visible or target.is_symlink():  # a link leads to what is shown, or nowhere
        return
    if target.is_dir():
        namespaces.mount_empty(str(target))
        for place in visible:
            _show(root, place)
    elif target.exists():
        namespaces.bind(str(root / "dev/null"), str(target))
