"""Profiles of files as jobs: one at a time per file, a newer one replaces the one that runs."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from accelopt_lsp.backend.protocol import FileText
from accelopt_lsp.server.documents import text_hash
from accelopt_lsp.server.progress import Progress
from accelopt_lsp.state.jobs import BackgroundJob

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

#: A profile shorter than this many seconds shows no progress.
QUICK = 0.5


class Profiles:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server

    def start(self, uri: str, file: FileText) -> BackgroundJob:
        """Profile ``file``; a profile of the same document that still runs is cancelled first."""
        earlier = self._server.jobs.cancel_for(uri, "profile")
        job = BackgroundJob("profile", uri, f"Profiling {PurePath(file.path).name}")
        return self._server.jobs.start(job, self._run(job, file, earlier))

    def ask(self, uri: str) -> BackgroundJob:
        """Profile a document because a person asked: from the text as it is, whatever is remembered."""
        earlier = self._server.jobs.cancel_for(uri, "profile")
        job = BackgroundJob("profile", uri, f"Profiling {PurePath(uri).name}")
        return self._server.jobs.start(job, self._asked(job, earlier))

    def is_running_for(self, uri: str, text: str) -> bool:
        """Whether a profile of exactly this text runs."""
        state = self._server.board.get(uri)
        running = any(self._server.jobs.running(uri, "profile"))
        return running and state is not None and state.profiled_text == text_hash(text)

    async def _asked(self, job: BackgroundJob, earlier: list[asyncio.Task[None]]) -> None:
        file = await self._server.editing.file(job.uri)
        await self._run(job, replace(file, again=True), earlier)

    async def _run(self, job: BackgroundJob, file: FileText, earlier: list[asyncio.Task[None]]) -> None:
        server, uri = self._server, job.uri
        if earlier:
            await asyncio.wait(earlier, timeout=5)
        server.board.update(uri, lambda state: state.with_profile_started(text_hash(file.text)))
        shows = server.client.has("window", "work_done_progress")
        async with (
            Progress(server, shows, job.title, lambda: server.jobs.cancel(job.id), delay=QUICK) as progress,
            aclosing(server.backend.profile(file)) as growing,
        ):
            async for results in growing:
                server.board.show(uri, results, file.found)
                done = [k for k in results.kernels if k.latency.us is not None]
                progress.report(f"{len(done)} of {len(file.found.kernels)} kernels")
