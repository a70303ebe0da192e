"""The project's own count: what a page adds is what its blocks of the project's files hold."""

from __future__ import annotations

import asyncio

from accelopt_benchmarks.server.house import ROOMS, house


def test_rooms_and_pages_are_counted() -> None:
    rows = {row.what: row for row in asyncio.run(house())}
    assert all((rows[f"lines of Python in {room}"].value or 0) > 1000 for room in ROOMS)
    assert rows["lines to add: setting"].value == 2
    assert rows["lines to add: nki-instruction"].detail == "in 2 files, nki-instruction.md"
