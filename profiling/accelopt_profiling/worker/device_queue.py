"""Jobs of one worker whose step waits for the host's devices, first come, first served."""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, TypeVar

from accelopt_profiling.worker.device_lock import DeviceLock

J = TypeVar("J")


class DeviceQueue(Generic[J]):
    """The lock of the devices, and who of this worker waits for it."""

    #: How often another worker's lock is tried again, in seconds.
    PAUSE = 0.02

    def __init__(self) -> None:
        self._lock = DeviceLock()
        self._waiting: deque[tuple[J, str]] = deque()

    def __bool__(self) -> bool:
        """Whether anyone waits."""
        return bool(self._waiting)

    def join(self, job: J, name: str) -> None:
        """``name`` tells others who has the devices, once it is this job's turn."""
        self._waiting.append((job, name))

    def leave(self, job: J) -> None:
        self._waiting = deque(waiting for waiting in self._waiting if waiting[0] is not job)

    def first(self) -> J | None:
        return self._waiting[0][0] if self._waiting else None

    def next(self) -> J | None:
        """The first job, when the devices are its own now; they are until ``release``.

        Raises:
            OSError: the lock cannot be used at all.
        """
        if not self._waiting or not self._lock.try_take(self._waiting[0][1]):
            return None
        return self._waiting.popleft()[0]

    def release(self) -> None:
        self._lock.release()

    def holder(self) -> dict[str, Any] | None:
        """See ``DeviceLock.holder``."""
        return self._lock.holder()
