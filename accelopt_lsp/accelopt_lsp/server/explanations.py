"""Explain a suggestion: a page with the counters that moved and, where a model may be asked, its words."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from accelopt_lsp.features.wording import CHANGE_HEADING, speedup
from accelopt_lsp.server.commands import Arguments
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.progress import Progress
from accelopt_lsp.state.jobs import BackgroundJob

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

#: An explanation that is there sooner than this, in seconds, shows no progress.
QUICK = 0.5


class Explanations:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server

    def ask(self, args: Arguments) -> BackgroundJob:
        """Explain the suggestion ``args.id``. One that is being explained already is the answer."""
        title = f"Explaining suggestion {args.id or ''}".strip()
        known = self._server.board.suggestion(args.id) if args.id else None
        uri = args.uri or (known[0].uri if known else "")
        for job in self._server.jobs.running(uri, "explain"):
            if job.title == title:
                return job
        job = BackgroundJob("explain", uri, title, known[2].kernel if known else None)
        return self._server.jobs.start(job, self._run(job, args))

    async def _run(self, job: BackgroundJob, args: Arguments) -> None:
        server = self._server
        suggestion, uri = await server.decisions.find(args)
        settings = await server.configuration.of(file_path(uri) or suggestion.file)
        await server.consenting.settle(suggestion.file, settings)
        name = f"{suggestion.kernel}-{suggestion.id}"
        title = f"{suggestion.kernel}: why {speedup(suggestion.speedup)}"
        shows = server.client.has("window", "work_done_progress")
        asks = server.client.trusted
        async with (
            Progress(server, shows, job.title, lambda: server.jobs.cancel(job.id), delay=QUICK),
            aclosing(server.backend.explain(suggestion, settings, asks)) as growing,
        ):
            text = ""
            async for newest in growing:
                if server.pages.grow:
                    await server.pages.show(name, title, newest, newest, newer=bool(text))
                text = newest
            if text and not server.pages.grow:
                await server.pages.show(name, title, text, text.partition(CHANGE_HEADING)[0].strip())
