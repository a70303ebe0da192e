"""Allow one device step at a time on a host, whichever worker or user it belongs to.

The lock is the kernel's (``flock``), so it is free again when its holder ends, however that happens; the file's content
only names the holder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections import deque
from pathlib import Path
from typing import Any, Generic, TypeVar

#: A folder that all users of a host share; it is emptied at boot.
FOLDER = Path("/tmp")


class DeviceLock:
    """The lock of this host's devices; free after construction."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._path = folder / "accelopt-device.lock"
        self._descriptor: int | None = None

    def try_acquire(self, what: str) -> bool:
        """Take the lock if it is free.

        ``what`` names the holder to others.

        Raises:
            OSError: the file cannot be opened or locked.
        """
        if self._descriptor is not None:
            return False
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._write_holder({"pid": os.getpid(), "what": what, "since": time.time()})
        return True

    def _write_holder(self, held: dict[str, Any] | None) -> None:
        assert self._descriptor is not None
        with contextlib.suppress(OSError):  # a full disk keeps nobody from the devices
            os.ftruncate(self._descriptor, 0)
            if held is not None:
                os.pwrite(self._descriptor, json.dumps(held).encode(), 0)

    def _open(self) -> int:
        # another user's file in a shared folder may be opened, but not with O_CREAT (fs.protected_regular)
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(FileNotFoundError):
            return os.open(self._path, flags)
        descriptor = os.open(self._path, flags | os.O_CREAT, 0o666)
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o666)
        return descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            self._write_holder(None)
            os.close(self._descriptor)
            self._descriptor = None

    def holder(self) -> dict[str, Any] | None:
        """Return what the holder wrote about itself. None when the lock is free."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            with contextlib.suppress(ValueError):
                holder = json.loads(os.read(descriptor, 4096))
                return holder if isinstance(holder, dict) else {}
            return {}
        finally:
            os.close(descriptor)
        return None


J = TypeVar("J")


class DeviceQueue(Generic[J]):
    """The jobs of one worker whose step waits for the devices, first come, first served, and the lock itself."""

    #: How often another worker's lock is tried again, in seconds.
    PAUSE = 0.02

    def __init__(self) -> None:
        self._lock = DeviceLock()
        self._waiting: deque[tuple[J, str]] = deque()

    def __bool__(self) -> bool:
        """Return whether any job waits."""
        return bool(self._waiting)

    def add(self, job: J, name: str) -> None:
        """Let ``job`` wait. ``name`` is shown to others while it has the devices."""
        self._waiting.append((job, name))

    def remove(self, job: J) -> None:
        self._waiting = deque(waiting for waiting in self._waiting if waiting[0] is not job)

    def first(self) -> J | None:
        return self._waiting[0][0] if self._waiting else None

    def acquire_for_next(self) -> J | None:
        """Take the devices for the first job and return it, until ``release``.

        None when it has to wait on.

        Raises:
            OSError: the lock cannot be used at all.
        """
        if not self._waiting or not self._lock.try_acquire(self._waiting[0][1]):
            return None
        return self._waiting.popleft()[0]

    def release(self) -> None:
        self._lock.release()

    def holder(self) -> dict[str, Any] | None:
        """See ``DeviceLock.holder``."""
        return self._lock.holder()
