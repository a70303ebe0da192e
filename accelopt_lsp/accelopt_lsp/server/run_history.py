"""Look back at the searches of a file: a page with every run and its steps."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.state.jobs import BackgroundJob

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

#: What a message holds of a page: its list of runs, so many lines.
BRIEF_LINES = 15


class RunHistory:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server

    def show(self, uri: str) -> BackgroundJob:
        """Show the newest searches of a document."""
        job = BackgroundJob("show-runs", uri, f"Looking up the searches in {PurePath(uri).name}")
        return self._server.jobs.start(job, self._run(uri))

    async def _run(self, uri: str) -> None:
        server, path = self._server, file_path(uri)
        if path is None:
            raise UserError(f"{uri} is no file, so nothing was ever searched in it.")
        text = await server.backend.past_runs(path, await server.configuration.of(path))
        name = PurePath(path).stem
        brief = "\n".join(text.splitlines()[:BRIEF_LINES])
        await server.pages.show(f"searches-in-{name}", f"Searches in {PurePath(path).name}", text, brief)
