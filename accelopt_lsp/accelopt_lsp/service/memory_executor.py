"""Use the memory from one thread of its own: the database may make a caller wait, the event loop must not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from accelopt_lsp.errors import UserError
from accelopt_lsp.settings.load import Settings
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.memory import Memory

T = TypeVar("T")

log = logging.getLogger(__name__)


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
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._call, settings, call)

    async def opened(self, settings: Settings) -> Memory:
        """Return the memory itself, for a search, which calls it from threads too. Raises UserError."""
        return await self.use(settings, lambda memory: memory)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _call(self, settings: Settings, call: Callable[[Memory], T]) -> T:
        path, project = settings.memory_path, settings.memory_project
        try:
            if path not in self._open:
                self._open[path] = Memory.open(path, project=project)
            memory = self._open[path]
            if not memory.connection.read_only:
                for file in memory.refresh():
                    log.warning("not read: %s", file)
            return call(memory)
        except MemoryUnavailableError as error:
            if (broken := self._open.pop(path, None)) is not None:
                broken.close()
            raise UserError(str(error)) from None

    def _close(self) -> None:
        for memory in self._open.values():
            memory.close()
        self._open.clear()
