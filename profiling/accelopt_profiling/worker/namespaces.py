"""Linux namespaces by system call: they separate a step's processes, network and files from the host's.

Every function raises OSError where the kernel refuses; nothing here needs root.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_MS_BIND, _MS_RECURSIVE, _MS_SLAVE = 4096, 1 << 14, 1 << 19
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_READ_ONLY = 2, 4, 8, 1
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_READ_ONLY = 442, -100, 0x8000, 1
_CAPABILITY_VERSION_3, _CAP_SYS_ADMIN, _PR_SET_NO_NEW_PRIVS = 0x20080522, 21, 38
_SET_INTERFACE_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _called(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _kernel() -> ctypes.CDLL:
    if _libc is None:
        raise OSError("namespaces are Linux's")
    return _libc


def unshare(flags: int) -> None:
    """Give this process (NEW_PIDS: its later children) namespaces of its own."""
    _called(_kernel().unshare(flags), "unshare")


def join(descriptor: int, flag: int) -> None:
    """Move this process (NEW_PIDS: its later children) into an open namespace."""
    _called(_kernel().setns(descriptor, flag), "setns")


def become_user_of_own_namespace() -> None:
    """Enter a new user namespace as the same user and group; there this process may create other namespaces.

    The process must have one thread.
    """
    user, group = os.geteuid(), os.getegid()
    unshare(NEW_USER)
    with contextlib.suppress(FileNotFoundError):  # kernels before 3.19
        Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def allow_namespaces() -> None:
    """Make this process able to create namespaces: in a user namespace of its own or, where the kernel refuses one
    (in a chroot, by a setting), with the privileges that it has.

    The process must have one thread.
    """
    try:
        become_user_of_own_namespace()
    except OSError:
        if not _may_administer():
            raise


def _may_administer() -> bool:
    """Return whether this process has CAP_SYS_ADMIN."""
    header, sets = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), ctypes.create_string_buffer(24)
    _called(_kernel().capget(header, sets), "capget")
    effective = struct.unpack("=6I", sets.raw)[0]
    return bool(effective & 1 << _CAP_SYS_ADMIN)


def mount(source: str, target: str, kind: str | None, flags: int = 0, data: str | None = None) -> None:
    encoded = [s.encode() if s is not None else None for s in (source, target, kind, data)]
    _called(
        _kernel().mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]),
        f"mount {target}",
    )


def keep_mounts_private() -> None:
    mount("none", "/", None, _MS_RECURSIVE | _MS_SLAVE)


def mount_own_processes() -> None:
    """Mount a ``/proc`` that shows this PID namespace only."""
    mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def mount_empty(folder: str, read_only: bool = False, mebibytes: int = 1) -> None:
    """Mount an empty folder in memory over ``folder``, with room for ``mebibytes``."""
    flags = _MS_NOSUID | _MS_NODEV | (_MS_READ_ONLY if read_only else 0)
    mount("none", folder, "tmpfs", flags, f"mode=0700,size={mebibytes}m")


def bind(source: str, target: str) -> None:
    """Show the file or folder ``source`` at ``target``."""
    mount(source, target, None, _MS_BIND)


def make_everything_read_only() -> None:
    """Make all present mounts read-only, device files apart (Linux 5.12)."""
    _set_attributes("/", _AT_RECURSIVE, struct.pack("=4Q", _ATTR_READ_ONLY, 0, 0, 0))


def make_writable(folder: str) -> None:
    """Make the one mount at ``folder``, made in this namespace, writable (Linux 5.12)."""
    _set_attributes(folder, 0, struct.pack("=4Q", 0, _ATTR_READ_ONLY, 0, 0))


def _set_attributes(path: str, flags: int, attributes: bytes) -> None:
    result = _kernel().syscall(_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, len(attributes))
    _called(result, f"mount_setattr {path}")


def bring_up_loopback() -> None:
    """Make 127.0.0.1 answer inside a new network namespace; there is no other interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_INTERFACE_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def give_up_privileges() -> None:
    """Drop every capability, for good: no later ``exec`` brings one back."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _called(_kernel().capset(header, bytes(24)), "capset")
    _called(_kernel().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
