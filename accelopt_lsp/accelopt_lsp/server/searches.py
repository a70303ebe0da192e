"""Search for faster versions as background jobs, and look back at earlier searches. What passes the gate is offered at
once, while the search goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import Any

from accelopt_agent.suggestions.suggestion import Suggestion, best_first
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.wording import version_name
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.connection import EditorConnection
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.pages import Pages
from accelopt_lsp.server.progress import WorkDoneProgress
from accelopt_lsp.server.session import Session
from accelopt_lsp.service.protocol import FileRequest, SearchRequest
from accelopt_lsp.state.jobs import BackgroundJob

#: The notification that a search is over, for clients that say ``"searchEnded": true``: ``{"uri", "kernel", "message",
#: "versions": [{"id", "title"}, ...]}``, best first.
ENDED = "accelopt/searchEnded"

#: What a message holds of the page of earlier searches: its list of runs, so many lines.
BRIEF_LINES = 15


class Searches:
    def __init__(self, session: Session, pages: Pages) -> None:
        self._editor, self._state = session.editor, session.state
        self._jobs, self._tasks = session.jobs, session.tasks
        self._service, self._configuration = session.service, session.configuration
        self._files, self._status = session.files, session.status
        self._consent, self._pages = session.consent, pages

    def actions(self) -> Mapping[str, Handler]:
        return {
            "optimize": self.optimize,
            "pause": self.pause,
            "resume": self.resume,
            "showRuns": self.show_runs,
        }

    def optimize(self, args: Arguments, *, resume: bool = False) -> BackgroundJob:
        """Search for faster versions of a kernel: the one named, the one at the 1-based line, or every one of the file.

        A search for the same that runs already is the answer, unless there are instructions: then it ends, and what it
        paid for is remembered. ``resume`` goes on with what an interrupted search had found out.
        """
        uri = args.document()
        kernel, state = args.kernel, self._state.get(uri)
        if (
            kernel is None
            and args.line is not None
            and state is not None
            and (at := state.kernel_at(args.line))
        ):
            kernel = at.kernel.name
        for job in self._jobs.running(uri, "optimize"):
            if job.kernel in (None, kernel):
                if not args.instructions:
                    return job
                self._jobs.cancel(job.id, at_once=True)
        job = BackgroundJob.of("optimize", uri, kernel)
        request = SearchRequest(args.instructions, resume, job.id)
        return self._jobs.start(job, self._run(job, args.line, request))

    def pause(self, args: Arguments) -> dict[str, Any]:
        """Let the searches that ``args`` name rest: what runs is finished, nothing new begins."""
        return several("paused", (self._switch(job, True) for job in self._named(args) if not job.paused))

    def resume(self, args: Arguments) -> dict[str, Any]:
        """Let the paused searches that ``args`` name go on; where there is none, go on with the one that was
        interrupted.

        Raises:
            UserError: there is nothing to go on with.
        """
        jobs = list(self._named(args))
        if jobs:
            return several("resumed", (self._switch(job, False) for job in jobs if job.paused))
        if args.uri is None:
            raise UserError("No search is paused.")
        return several("resumed", [self.optimize(args, resume=True)])

    def _named(self, args: Arguments) -> Iterator[BackgroundJob]:
        for job in self._jobs.running(args.uri, "optimize"):
            kernel = args.kernel is None or job.kernel in (None, args.kernel)
            if args.job in (None, job.id) and kernel:
                yield job

    def _switch(self, job: BackgroundJob, paused: bool) -> BackgroundJob:
        self._jobs.mark(job.id, paused)
        self._tasks.start(self._service.pause(job.id, paused))
        return job

    def show_runs(self, args: Arguments) -> BackgroundJob:
        """Show a page with the newest searches of a document and their steps."""
        job = BackgroundJob.of("showRuns", args.document())
        return self._jobs.start(job, self._show_runs(job.uri))

    async def _run(self, job: BackgroundJob, line: int | None, request: SearchRequest) -> None:
        async with self._editor.progress(job.title, lambda: self._jobs.cancel(job.id)) as progress:
            file = await self._files.read(job.uri)
            await self._consent.request(
                file.path,
                file.settings,
                again=bool(request.instructions),
                asking=lambda: progress.report("waiting for your answer: may the model be asked?"),
            )
            try:
                for name in kernels_meant(file, job.kernel, line):
                    if not await self._search(job, file, name=name, progress=progress, request=request):
                        break
            finally:
                self._tasks.start(self._show_interrupted(job.uri, file))

    async def _search(
        self,
        job: BackgroundJob,
        file: FileRequest,
        name: str,
        progress: WorkDoneProgress,
        request: SearchRequest,
    ) -> bool:
        """Search one kernel; return whether nobody stopped it."""
        stopped: list[str] = []

        def stop() -> None:
            stopped.append(job.id)
            self._tasks.start(self._service.stop(job.id))

        by_id: dict[str, Suggestion] = {}
        paused = any(j.id == job.id and j.paused for j in self._jobs.running(job.uri))
        request = replace(request, paused=paused)
        self._jobs.ends_with(job.id, stop)
        from accelopt_agent.events import Finished, LayoutSkipped, SuggestionFound
        from accelopt_lsp.features.search_line import SearchLine

        line = SearchLine(name, file.settings.search.candidates)
        async with aclosing(self._service.optimize(file, name, request)) as events:
            async for event in events:
                if (now := line.of(event)) is not None:
                    progress.report(str(now), now.share)
                    self._jobs.note(job.id, asdict(now))
                    self._status.update(self._jobs.running())
                if isinstance(event, SuggestionFound):
                    by_id[event.suggestion.id] = event.suggestion
                    self._state.suggest(job.uri, name, tuple(best_first(by_id.values())))
                elif isinstance(event, LayoutSkipped):
                    self._editor.note(event.text, "info")
                elif isinstance(event, Finished):
                    state = self._state.get(job.uri)
                    at = state.kernel(name) if state is not None else None
                    offers = at.offers if at is not None else ()
                    report_end(self._editor, job.uri, name, line.end(event), offers)
        self._jobs.ends_with(job.id, None)
        return not stopped

    async def _show_interrupted(self, uri: str, file: FileRequest) -> None:
        """Read from the memory after a search whether it can go on."""
        with contextlib.suppress(UserError):
            stored = await self._service.stored_searches(file)
            self._state.update(uri, lambda state: state.with_interrupted(stored.interrupted))

    async def _show_runs(self, uri: str) -> None:
        path = file_path(uri)
        if path is None:
            raise UserError(f"{uri} is no file, so nothing was ever searched in it.")
        text = await self._service.past_runs(path, await self._configuration.of(path))
        name = PurePath(path).stem
        brief = "\n".join(text.splitlines()[:BRIEF_LINES])
        await self._pages.show(f"searches in {name}", path, f"Searches in {PurePath(path).name}", text, brief)


def report_end(
    editor: EditorConnection, uri: str, kernel: str, message: str, versions: Iterable[Suggestion]
) -> None:
    """Say how a search ended; to a client that asked for it, with the versions to look at."""
    if not editor.client.searches:
        editor.say(message)
        return
    best = [{"id": s.id, "title": version_name(s)} for s in versions]
    editor.notify(ENDED, {"uri": uri, "kernel": kernel, "message": message, "versions": best})


def several(outcome: str, jobs: Iterable[BackgroundJob]) -> dict[str, Any]:
    """Return the answer to a command about several jobs: the first one's id, and all under ``outcome``."""
    ids = [job.id for job in jobs]
    return {"job": ids[0] if ids else None, outcome: ids}


def kernels_meant(file: FileRequest, kernel: str | None, line: int | None) -> list[str]:
    """Return the names of the kernels that are meant: the one named, at the line, or all. Raises UserError:
    there is none."""
    if kernel is None and line is not None:
        inside = [k for k in file.source.kernels if k.first_line <= line <= k.end_line]
        if not inside:
            raise UserError(f"There is no kernel at line {line} of {file.path}.")
        kernel = max(inside, key=lambda k: k.first_line).name
    return [k.name for k in file.kernels(kernel)]
