"""Wait on many descriptors at once, each with what to do when it can be read."""

from __future__ import annotations

import contextlib
import selectors
from collections.abc import Callable
from typing import Protocol


class _HasDescriptor(Protocol):
    def fileno(self) -> int: ...


class Listening:
    """Calls what was given for a descriptor, and nothing else: the number of one that was closed is soon another's."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def hear(self, descriptor: int | _HasDescriptor, then: Callable[[], None]) -> None:
        """Call ``then`` whenever ``descriptor`` can be read, until ``forget``."""
        self._selector.register(descriptor, selectors.EVENT_READ, then)

    def forget(self, descriptor: int | _HasDescriptor) -> None:
        """To be called before the descriptor is closed; nothing happens when it is not listened to."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(descriptor)

    def wait(self, seconds: float | None) -> None:
        """Wait until something can be read, at most ``seconds``, and call what belongs to it."""
        for key, _ in self._selector.select(seconds):
            if self._selector.get_map().get(key.fd) is key:  # what was called before may have ended it
                key.data()
