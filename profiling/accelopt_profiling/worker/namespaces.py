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
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_READ_ONLY = 442, -100, 0x8000, 1
_CAPABILITY_VERSION_3, _CAP_SYS_ADMIN, _PR_SET_NO_NEW_PRIVS = 0x20080522, 21, 38
_PIVOT_ROOT, _MNT_DETACH = {"x86_64": 155, "aarch64": 41}, 2
_PR_SET_DUMPABLE = 4
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


def become_user_of_own_namespace(other: int | None = None) -> None:
    """Enter a new user namespace as the same user and group.

    There this process may create other namespaces. Root's can have the user and group ``other`` too.

    The process must have one thread.
    """
    user, group = os.geteuid(), os.getegid()
    if other is not None:
        _enter_with_users(f"{user} {user} 1\n{other} {other} 1", f"{group} {group} 1\n{other} {other} 1")
        return
    unshare(NEW_USER)
    with contextlib.suppress(FileNotFoundError):  # kernels before 3.19
        Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _enter_with_users(users: str, groups: str) -> None:
    """Enter a new user namespace whose users a process outside of it, a child, writes down: only that one may."""
    parent, (entered, writer) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(writer)
            if os.read(entered, 1):
                Path(f"/proc/{parent}/uid_map").write_text(users)
                Path(f"/proc/{parent}/gid_map").write_text(groups)
                status = 0
        finally:
            os._exit(status)
    os.close(entered)
    try:
        unshare(NEW_USER)
        os.write(writer, b"1")
    finally:
        os.close(writer)
        _, ended = os.waitpid(child, 0)
    if ended != 0:
        raise OSError("no other user can be had in a namespace of its own")


def allow_namespaces(other: int | None = None) -> None:
    """Make this process able to create namespaces: in a user namespace of its own or, where the kernel refuses one
    (in a chroot, by a setting), with the privileges that it has. ``other`` is as in ``become_user_of_own_namespace``.

    The process must have one thread.
    """
    try:
        become_user_of_own_namespace(other)
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


def mount_own_processes(folder: str = "/proc") -> None:
    """Mount a ``/proc`` that shows this PID namespace only."""
    mount("proc", folder, "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def mount_empty(folder: str, mebibytes: int = 1, mode: int = 0o755) -> None:
    """Mount an empty folder in memory over ``folder``, with room for ``mebibytes``."""
    mount("none", folder, kind="tmpfs", flags=_MS_NOSUID | _MS_NODEV, data=f"mode={mode:o},size={mebibytes}m")


def bind(source: str, target: str) -> None:
    """Show the file or folder ``source`` at ``target``, with what is mounted below it."""
    mount(source, target, None, _MS_BIND | _MS_RECURSIVE)


def change_root(folder: str) -> None:
    """Make the mount at ``folder`` the root of this process and of all others with the same root, and let go of the old
    one. Where that cannot be let go of (in some chroots), it stays mounted out of reach.
    """
    os.chdir(folder)
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None or _kernel().syscall(number, b".", b".") != 0:
        os.chroot(".")
        return
    _called(_kernel().umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")


def make_read_only(folder: str) -> None:
    """Make the mount at ``folder`` and all below it read-only, device files apart (Linux 5.12)."""
    _set_attributes(folder, _AT_RECURSIVE, struct.pack("=4Q", _ATTR_READ_ONLY, 0, 0, 0))


def make_writable(folder: str) -> None:
    """Make the one mount at ``folder``, made in this namespace, writable (Linux 5.12)."""
    _set_attributes(folder, 0, struct.pack("=4Q", 0, _ATTR_READ_ONLY, 0, 0))


def _set_attributes(path: str, flags: int, attributes: bytes) -> None:
    result = _kernel().syscall(_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, len(attributes))
    _called(result, f"mount_setattr {path}")


def bring_up_loopback() -> None:
    """Make 127.0.0.1 answer inside a new network namespace. There is no other interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_INTERFACE_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def bound_connections(size: int) -> None:
    """Let the buffers of TCP connections in this network namespace grow to ``size`` bytes each."""
    for name in ("tcp_rmem", "tcp_wmem"):
        Path(f"/proc/sys/net/ipv4/{name}").write_text(f"4096 {min(size, 16384)} {size}")


def give_up_privileges() -> None:
    """Drop every capability, for good: no later ``exec`` brings one back."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _called(_kernel().capset(header, bytes(24)), "capset")
    _called(_kernel().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def become(user: int) -> None:
    """Become the user and group ``user`` for good, in no other group."""
    with contextlib.suppress(PermissionError):  # a namespace without other groups
        os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _kernel().prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # or its own files in /proc are root's
