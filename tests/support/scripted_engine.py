"""The child of ``tests/backend/test_process.py``: the scripted backend behind a pipe; ``DIE = 1`` in a file ends it."""

from __future__ import annotations

import asyncio
import os

from accelopt_lsp.backend.process_main import serve
from accelopt_lsp.backend.protocol import FileText, StoredSearches
from support.scripted_server import Scripted


class Loud(Scripted):
    async def stored_searches(self, file: FileText, saved: bool = False) -> StoredSearches:
        if "DIE = 1" in file.text:
            os._exit(7)
        self.memory_problem("the disk is full")
        return await super().stored_searches(file, saved)


def main() -> None:
    asyncio.run(serve(Loud(), os.fdopen(0, "rb"), os.fdopen(1, "wb")))
