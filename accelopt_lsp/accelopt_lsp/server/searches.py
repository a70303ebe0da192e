"""Searches for faster versions as jobs: what passes the gate is offered at once, while the search goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import PurePath
from typing import TYPE_CHECKING

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.backend.protocol import FileText, SearchEnd, SearchProgress, SearchRequest
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.wording import version_name
from accelopt_lsp.server.commands import Arguments
from accelopt_lsp.server.progress import Progress
from accelopt_lsp.state.jobs import BackgroundJob

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

#: The notification that a search is over, for clients that say ``"searchEnded": true``: ``{"uri", "kernel", "message",
#: "versions": [{"id", "title"}, ...]}``, best first.
ENDED = "accelopt/searchEnded"


class Searches:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server

    def ask(self, args: Arguments, *, resume: bool = False) -> BackgroundJob:
        """Search for faster versions of a kernel: the one named, the one at the 1-based line, or every one of the file.
        A search for the same that runs already is the answer, unless there are instructions: then it ends, and what it
        paid for is remembered. ``resume`` goes on with what an interrupted search had found out."""
        uri = args.document("resume" if resume else "optimize")
        kernel, state = args.kernel, self._server.board.get(uri)
        if (
            kernel is None
            and args.line is not None
            and state is not None
            and (at := state.kernel_at(args.line))
        ):
            kernel = at.kernel.name
        for job in self._server.jobs.running(uri, "optimize"):
            if job.kernel in (None, kernel):
                if not args.instructions:
                    return job
                self._server.jobs.cancel(job.id)
        job = BackgroundJob("optimize", uri, f"Optimizing {kernel or PurePath(uri).name}", kernel)
        wish = SearchRequest(args.instructions, resume, job.id)
        return self._server.jobs.start(job, self._run(job, args.line, wish))

    def pause(self, args: Arguments) -> list[BackgroundJob]:
        """Let the searches that ``args`` name rest: what runs is finished, nothing new begins."""
        return [self._switch(job, True) for job in self._named(args) if not job.paused]

    def resume(self, args: Arguments) -> list[BackgroundJob]:
        """Let the paused searches that ``args`` name go on; where there is none, go on with the one that was
        interrupted.

        Raises:
            UserError: there is nothing to go on with.
        """
        named = list(self._named(args))
        if named:
            return [self._switch(job, False) for job in named if job.paused]
        if args.uri is None:
            raise UserError("No search is paused.")
        return [self.ask(args, resume=True)]

    def _named(self, args: Arguments) -> Iterator[BackgroundJob]:
        for job in self._server.jobs.running(args.uri, "optimize"):
            kernel = args.kernel is None or job.kernel in (None, args.kernel)
            if args.job in (None, job.id) and kernel:
                yield job

    def _switch(self, job: BackgroundJob, paused: bool) -> BackgroundJob:
        self._server.jobs.mark(job.id, paused)
        self._server.background(self._server.backend.pause(job.id, paused))
        return job

    async def _run(self, job: BackgroundJob, line: int | None, wish: SearchRequest) -> None:
        server = self._server
        shows = server.client.has("window", "work_done_progress")
        async with Progress(server, shows, job.title, lambda: server.jobs.cancel(job.id)) as progress:
            file = await server.editing.file(job.uri)
            await server.consenting.settle(
                file.path,
                file.settings,
                again=bool(wish.instructions),
                asking=lambda: progress.report("waiting for your answer: may the model be asked?"),
            )
            try:
                for name in _kernels(file, job.kernel, line):
                    await self._search(job, file, name, progress, wish)
            finally:
                server.background(self._look_again(job.uri, file))

    async def _search(
        self, job: BackgroundJob, file: FileText, name: str, progress: Progress, wish: SearchRequest
    ) -> None:
        server = self._server
        found: dict[str, Suggestion] = {}
        paused = any(j.id == job.id and j.paused for j in server.jobs.running(job.uri))
        wish = SearchRequest(wish.instructions, wish.resume, wish.job, paused)
        async with aclosing(server.backend.optimize(file, name, wish)) as events:
            async for event in events:
                if isinstance(event, SearchProgress):
                    progress.report(event.message, event.share)
                elif isinstance(event, Suggestion):
                    found[event.id] = event
                    best_first = tuple(sorted(found.values(), key=lambda s: -s.speedup.value))
                    server.board.suggest(job.uri, name, best_first)
                elif isinstance(event, SearchEnd):
                    self._tell_end(job.uri, name, event)

    def _tell_end(self, uri: str, kernel: str, event: SearchEnd) -> None:
        """Say how a search ended; to a client that asked for it, with what there is to look at."""
        server = self._server
        if not server.client.searches:
            server.say(event.message)
            return
        state = server.board.get(uri)
        at = state.kernel(kernel) if state is not None else None
        best = [{"id": s.id, "title": version_name(s)} for s in (at.offers if at is not None else ())]
        ended = {"uri": uri, "kernel": kernel, "message": event.message, "versions": best}
        server.protocol.notify(ENDED, ended)

    async def _look_again(self, uri: str, file: FileText) -> None:
        """What the memory knows after a search: above all whether it can go on."""
        with contextlib.suppress(UserError):
            remembered = await self._server.backend.remembered(file)
            self._server.board.update(uri, lambda state: state.with_interrupted(remembered.interrupted))


def _kernels(file: FileText, kernel: str | None, line: int | None) -> list[str]:
    """The names of the kernels to search for. Raises UserError: there is none."""
    found = [k for k in file.found.kernels if not k.device_function] or list(file.found.kernels)
    if kernel is not None:
        if all(k.name != kernel for k in file.found.kernels):
            raise UserError(f"{file.path} has no kernel {kernel}.")
        return [kernel]
    if line is not None:
        inside = [k for k in file.found.kernels if k.first_line <= line <= k.end_line]
        if not inside:
            raise UserError(f"There is no kernel at line {line} of {file.path}.")
        return [max(inside, key=lambda k: k.first_line).name]
    if not found:
        raise UserError(f"{file.path} has no kernel.")
    return [k.name for k in found]
