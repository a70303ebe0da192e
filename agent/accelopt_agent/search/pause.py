"""The switch that pauses a search: running steps finish, and no new one is started."""

from __future__ import annotations

import asyncio


class PauseSwitch:
    """The switch of one search. ``on`` while it rests."""

    def __init__(self, on: bool = False) -> None:
        self._going = asyncio.Event()
        if not on:
            self._going.set()

    @property
    def on(self) -> bool:
        return not self._going.is_set()

    def pause(self) -> None:
        self._going.clear()

    def go_on(self) -> None:
        self._going.set()

    async def over(self) -> None:
        """Wait until the search is continued."""
        await self._going.wait()
