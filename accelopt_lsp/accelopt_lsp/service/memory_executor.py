"""Use the memory from one thread of its own: the database may make a caller wait, the event loop must not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from accelopt_lsp.errors import MemoryUnusableError
from accelopt_lsp.resources import open_memory, refresh
from accelopt_lsp.settings.load import Settings
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.memory import Memory

T = TypeVar("T")


class MemoryExecutor:
    """One thread and the memories it has open, by path."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memory")
        self._open: dict[Path, Memory] = {}

    async def use(self, settings: Settings, call: Callable[[Memory], T]) -> T:
        """``call(memory)`` on the memory's thread, with the memory that the settings name.

        Raises:
            MemoryUnusableError: the database cannot be used; it says why and what to do.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._call, settings, call)

    async def opened(self, settings: Settings) -> Memory:
        """Return the memory itself, for a search, which calls it from threads too. Raises MemoryUnusableError."""
        return await self.use(settings, lambda memory: memory)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _call(self, settings: Settings, call: Callable[[Memory], T]) -> T:
        path = settings.memory_path
        try:
            if path in self._open:
                refresh(self._open[path])
            else:
                self._open[path] = open_memory(settings)
            return call(self._open[path])
        except MemoryUnavailableError as error:
            if (broken := self._open.pop(path, None)) is not None:
                broken.close()
            raise MemoryUnusableError(str(error)) from None

    def _close(self) -> None:
        for memory in self._open.values():
            memory.close()
        self._open.clear()
