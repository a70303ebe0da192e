"""One device step at a time on a host, whichever worker or user it belongs to.

The lock is the kernel's (``flock``), so it is free again when its holder ends, however that happens; what stands in the
file only says who has it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

#: A folder that all users of a host share; it is emptied at boot.
FOLDER = Path("/tmp")


class DeviceLock:
    """The lock of this host's devices, not taken yet."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._path = folder / "accelopt-device.lock"
        self._descriptor: int | None = None

    def try_take(self, what: str) -> bool:
        """Take the lock if it is free; ``what`` tells others who has it.

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
        self._say({"pid": os.getpid(), "what": what, "since": time.time()})
        return True

    def _say(self, held: dict[str, Any] | None) -> None:
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
            self._say(None)
            os.close(self._descriptor)
            self._descriptor = None

    def holder(self) -> dict[str, Any] | None:
        """Who has it, as it said of itself; None when it is free."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            with contextlib.suppress(ValueError):
                said = json.loads(os.read(descriptor, 4096))
                return said if isinstance(said, dict) else {}
            return {}
        finally:
            os.close(descriptor)
        return None
