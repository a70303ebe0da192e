"""The child of ``tests/service/test_process.py``: the scripted service behind a pipe; ``DIE = 1`` in a file ends it."""

from __future__ import annotations

import asyncio
import os

from accelopt_lsp.service.process_main import serve
from accelopt_lsp.service.protocol import FileRequest, StoredSearches
from support.scripted_server import Scripted


class Loud(Scripted):
    async def stored_searches(self, file: FileRequest, saved: bool = False) -> StoredSearches:
        if "DIE = 1" in file.text:
            os._exit(7)
        self.surface.memory_problem("the disk is full")
        return await super().stored_searches(file, saved)


def main() -> None:
    asyncio.run(serve(Loud, os.fdopen(0, "rb"), os.fdopen(1, "wb")))
