"""Remove and measure folders that user code left: of any depth and any number of entries.

Python's own ways recurse, or build paths longer than the system takes. Here every call names one entry of an open
folder, no link is followed, at most six descriptors are open, and what cannot be done is left out, not raised.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW
#: How many entries a measurement looks at.
_MOST_ENTRIES = 20_000


def remove_tree(folder: Path) -> None:
    """Remove a folder with all in it; what ``empty_tree`` leaves stays."""
    empty_tree(folder)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def empty_tree(folder: Path) -> None:
    """Remove all that lies in a folder.

    Where it is a link, a mounted file system and what the system keeps stay.

    A folder below the first level is moved up to it before it is emptied, so that none lies deep: that also keeps the
    mounted ones, which cannot be moved.
    """
    prefix = secrets.token_hex(8)
    new_names = (f"{prefix}-{number}" for number in itertools.count())
    with contextlib.suppress(OSError):
        top = _open_to_owner(str(folder), None)
        try:
            while _remove_entries(top, top, new_names):
                pass
        finally:
            os.close(top)


def _remove_entries(folder: int, top: int, new_names: Iterator[str]) -> bool:
    """Remove the entries of an open folder, or move them up to ``top``; return whether there were any that went."""
    changed = False
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # it stays, or another process removed it
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=folder)
                elif folder != top:
                    os.close(
                        _open_to_owner(entry.name, folder)
                    )  # a folder that cannot be written to cannot be moved
                    os.rename(entry.name, next(new_names), src_dir_fd=folder, dst_dir_fd=top)
                elif _is_in_use(entry.name, top):
                    inner = _open_to_owner(entry.name, top)
                    try:
                        changed = _remove_entries(inner, top, new_names) or changed
                    finally:
                        os.close(inner)
                    os.rmdir(entry.name, dir_fd=top)
                changed = True
    return changed


def _is_in_use(name: str, parent: int) -> bool:
    """Remove an empty folder; return whether it holds something.

    Raises OSError for one that a file system is mounted on (the kernel says so before it looks for entries).
    """
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return True
    return False


def _open_to_owner(name: str, parent: int | None) -> int:
    """Open a folder, no link, and let its owner do everything in it."""
    if not hasattr(os, "O_PATH"):  # macOS
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
        return os.open(name, os.O_RDONLY | _FOLDER, dir_fd=parent)
    handle = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)
    try:
        with contextlib.suppress(OSError):
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=handle)
    finally:
        os.close(handle)


def size_of_tree(folder: str) -> int:
    """Return the bytes that a folder takes on its disk.

    Of one with very many entries, of the first.

    The way back up is by "..", which has to be the folder that the way down came through: user code may move folders
    meanwhile, and the measurement ends there.
    """
    try:
        here = os.open(folder, os.O_RDONLY | _FOLDER)
    except OSError:
        return 0
    above: list[tuple[os.stat_result, list[str]]] = []
    size = count = 0
    try:
        inner, size, count = _measure_entries(here)
        while count <= _MOST_ENTRIES and (inner or above):
            if inner:
                name, state = inner.pop(), os.fstat(here)
                with contextlib.suppress(OSError):
                    below = os.open(name, os.O_RDONLY | _FOLDER, dir_fd=here)
                    os.close(here)
                    here = below
                    above.append((state, inner))
                    inner, more, entries = _measure_entries(here)
                    size, count = size + more, count + entries
            else:
                state, inner = above.pop()
                outer = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
                os.close(here)
                here = outer
                if not os.path.samestat(os.fstat(here), state):
                    break
    except OSError:
        pass
    finally:
        os.close(here)
    return size


def _measure_entries(folder: int) -> tuple[list[str], int, int]:
    """Return the folders in an open folder, and the bytes and number of its first entries."""
    inner: list[str] = []
    size = number = 0
    with os.scandir(folder) as entries:
        for entry in itertools.islice(entries, _MOST_ENTRIES + 1):
            number += 1
            with contextlib.suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(state.st_mode):
                    inner.append(entry.name)
                    size += state.st_blocks * 512
                else:
                    size += state.st_blocks * 512 // max(1, state.st_nlink)
    return inner, size, number
