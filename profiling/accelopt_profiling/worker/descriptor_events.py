"""Wait on many descriptors at once and call back when one can be read."""

from __future__ import annotations

import contextlib
import selectors
from collections.abc import Callable
from typing import Protocol


class _HasDescriptor(Protocol):
    def fileno(self) -> int: ...


class DescriptorEvents:
    """Callbacks by descriptor.

    A callback is never called for another descriptor that was given the number of a closed one.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def add(self, descriptor: int | _HasDescriptor, callback: Callable[[], None]) -> None:
        """Call ``callback`` whenever ``descriptor`` can be read, until ``remove``."""
        self._selector.register(descriptor, selectors.EVENT_READ, callback)

    def remove(self, descriptor: int | _HasDescriptor) -> None:
        """Stop waiting for ``descriptor``, before it is closed. Nothing happens when it was not added."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(descriptor)

    def wait(self, seconds: float | None) -> None:
        """Wait until something can be read, at most ``seconds``, and call what belongs to it."""
        for key, _ in self._selector.select(seconds):
            if self._selector.get_map().get(key.fd) is key:  # an earlier callback may have removed it
                key.data()
