"""Use the memory from one thread of its own: the database may make a caller wait, the event loop must not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from accelopt_lsp.errors import UserError
from accelopt_lsp.settings.load import Settings
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.location import default_path
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
            UserError: the database cannot be used; it says why and what to do.
        """
        path = settings.memory_path or default_path()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._call, path, call)

    async def opened(self, settings: Settings) -> Memory:
        """Return the memory itself, for a search, which calls it from threads too. Raises UserError."""
        return await self.use(settings, lambda memory: memory)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _call(self, path: Path, call: Callable[[Memory], T]) -> T:
        try:
            if path not in self._open:
                self._open[path] = Memory.open(path)
            return call(self._open[path])
        except MemoryUnavailableError as error:
            if (memory := self._open.pop(path, None)) is not None:
                memory.close()
            raise UserError(str(error)) from None

    def _close(self) -> None:
        for memory in self._open.values():
            memory.close()
        self._open.clear()
