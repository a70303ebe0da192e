"""Landlock by system calls: a process bars itself from files, signals and sockets outside of what it names.

For hosts where a step gets no root of its own. It needs no privilege (Linux 5.13; signals and abstract sockets 6.12).
Constants: ``include/uapi/linux/landlock.h``.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress

_CREATE, _ADD, _RESTRICT, _VERSION, _PATH_BENEATH = 444, 445, 446, 1, 1
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_ALL_OF = {
    1: (1 << 13) - 1,
    2: (1 << 14) - 1,
    3: (1 << 15) - 1,
    4: (1 << 15) - 1,
}  # later versions: 16 rights
_TCP, _SCOPES = 3, 3
_FOR_FILES = _EXECUTE | _WRITE | _READ | (1 << 14) | (1 << 15)

LISTING = _LIST
READING = _EXECUTE | _READ | _LIST
DEVICE = _READ | _WRITE | (1 << 15)


def landlock_version() -> int:
    """Return the version of Landlock in this kernel, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None, use_errno=True).syscall(_CREATE, None, 0, _VERSION)))


def restrict(rules: Iterable[tuple[str, int]], writable: Iterable[str]) -> None:
    """Bar this process and its children, for good, from all files but those of ``rules`` (path, rights) and those at
    or below ``writable``; from signals to others, TCP and abstract sockets as far as the kernel can. A path that is not
    there is passed over.

    The process must have given up privileges (``no_new_privs``). Raises OSError.
    """
    version = landlock_version()
    if version == 0:
        raise OSError("Landlock is not in this kernel")
    handled = _ALL_OF.get(version, (1 << 16) - 1)
    attributes = struct.pack("=QQQ", handled, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(_CREATE, attributes, size, 0)
    try:
        for path, rights in [*rules, *((path, handled) for path in writable)]:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(ruleset, path, rights & handled)
        _call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        of_kind = rights if os.path.isdir(path) else rights & _FOR_FILES
        _call(_ADD, ruleset, _PATH_BENEATH, struct.pack("=Qi", of_kind, opened), 0)
    finally:
        os.close(opened)


def _call(*arguments: object) -> int:
    result = int(ctypes.CDLL(None, use_errno=True).syscall(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
