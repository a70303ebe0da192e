"""Make versions again and check them: without one of their steps or in a changed kernel when a person asks, and after
an edit elsewhere by itself, once the file is saved."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from accelopt_agent.suggestions.suggestion import Suggestion, best_first
from accelopt_lsp.errors import HostUnavailableError, UserError
from accelopt_lsp.features.wording import step_gain, version_name
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.searches import report_end
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.suggestions import SuggestionActions
from accelopt_lsp.service.protocol import FileRequest, SearchRequest
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_profiling.kernels import KernelSource

if TYPE_CHECKING:
    from accelopt_agent.events import Finished
    from accelopt_agent.request import Repetition
    from accelopt_lsp.features.search_line import SearchLine, SearchProgress

#: A file is left alone for so many seconds after a save before its versions are checked.
QUIET = 1.0


class VersionChecks:
    def __init__(self, session: Session, suggestions: SuggestionActions) -> None:
        self._editor, self._state = session.editor, session.state
        self._jobs, self._tasks = session.jobs, session.tasks
        self._service, self._files, self._documents = session.service, session.files, session.documents
        self._parser, self._suggestions = session.parser, suggestions
        self._saved_texts: dict[str, str] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        session.documents.saved.listen(self._saved)
        session.documents.read.listen(self._read)
        session.documents.closed.listen(self._stop)

    def actions(self) -> Mapping[str, Handler]:
        return {"check": self.check}

    def check(self, args: Arguments) -> BackgroundJob:
        """Make a version again in the text as it is and check it; ``without`` one of its steps (1-based), or with
        ``ask`` without the one that the person names."""
        uri, kernel = self._suggestions.target(args)
        job = BackgroundJob.of("check", uri, kernel, id=args.id or "")
        return self._jobs.start(job, self._check(job, args))

    async def _check(self, job: BackgroundJob, args: Arguments) -> None:
        from accelopt_agent.request import Repetition
        from accelopt_lsp.features.search_line import SearchLine

        suggestion, uri = await self._suggestions.find(args.id, args.uri)
        without = await self._step_to_leave_out(suggestion) if args.ask else args.without
        if args.ask and without is None:
            return
        count = len(suggestion.way)
        if without is not None and not 1 <= without <= count > 1:
            raise UserError(f"Version {suggestion.id} has no step {without} that can be left out.")
        kept = tuple(n for n in range(count) if n + 1 != without)
        line = SearchLine(suggestion.kernel, max(len(kept), 1))
        async with self._editor.progress(job.title, partial(self._jobs.cancel, job.id)) as progress:
            file = await self._files.read(uri)
            if (folder := file.settings.untrusted) is not None:
                raise UserError(f"{folder} is not trusted, so nothing of it is run: no check of a version.")
            version, end = await self._made_again(
                uri,
                file,
                Repetition(suggestion, kept),
                line,
                lambda now: progress.report(str(now), now.share),
            )
        versions = [] if version is None else [version]
        report_end(self._editor, uri, suggestion.kernel, line.end(end), versions)

    async def _step_to_leave_out(self, suggestion: Suggestion) -> int | None:
        gains = ((step.summary.rstrip("."), step_gain(step, suggestion.target)) for step in suggestion.way)
        titles = {f"{n}. {what}: {gain}": n for n, (what, gain) in enumerate(gains, 1)}
        if len(titles) < 2:
            raise UserError(f"Version {suggestion.id} has one step, which cannot be left out.")
        answer = await self._editor.ask(f"Leave which step out of {version_name(suggestion)}?", list(titles))
        return titles.get(answer or "")

    async def _made_again(
        self,
        uri: str,
        file: FileRequest,
        repetition: Repetition,
        line: SearchLine,
        report: Callable[[SearchProgress], None] = lambda now: None,
    ) -> tuple[Suggestion | None, Finished]:
        """Return the version that was checked, which is offered then, and how that ended."""
        from accelopt_agent.events import Finished, SuggestionFound

        old, version, end = repetition.suggestion, None, None
        request = SearchRequest(resume=True, ask_model=False, repetition=repetition)
        async with aclosing(self._service.optimize(file, old.kernel, request)) as events:
            async for event in events:
                if (now := line.of(event)) is not None:
                    report(now)
                if isinstance(event, SuggestionFound):
                    version = event.suggestion
                elif isinstance(event, Finished):
                    end = event
        if end is None:
            raise HostUnavailableError("The check ended without a result.")
        state = self._state.get(uri)
        kernel = state.kernel(old.kernel) if state is not None else None
        if version is not None and kernel is not None:
            gone = {version.id} | ({old.id} if repetition.whole else set())
            others = [s for s in kernel.suggestions if s.id not in gone]
            self._state.suggest(uri, old.kernel, tuple(best_first([version, *others])))
            self._suggestions.note_check(uri, version, holds=True)
        return version, end

    # After a save

    def _saved(self, uri: str) -> None:
        self._stop(uri)
        text = self._documents.opened(uri)
        if text is not None:
            self._saved_texts[uri] = text
            self._running[uri] = self._tasks.start(self._check_offers(uri, text))

    def _read(self, uri: str) -> None:
        """End the checks of a text that is no longer that of the document."""
        if uri in self._running and self._documents.opened(uri) != self._saved_texts[uri]:
            self._stop(uri)

    def _stop(self, uri: str) -> None:
        self._saved_texts.pop(uri, None)
        if running := self._running.pop(uri, None):
            running.cancel()

    async def _check_offers(self, uri: str, text: str) -> None:
        """Check the versions that fit the saved text and were checked with another one."""
        state = self._state.get(uri)
        if state is None or not any(s.base_text != text for k in state.kernels for s in k.offers):
            return
        await asyncio.sleep(QUIET)
        file = await self._files.read(uri)
        if file.settings.untrusted is not None or file.settings.editor.profile_on == "command":
            return
        for name in [kernel.kernel.name for kernel in state.kernels]:
            now = self._state.get(uri)
            kernel = now.kernel(name) if now is not None else None
            for suggestion in kernel.offers if kernel is not None else ():
                if any(self._jobs.running(uri, "optimize")):
                    return
                if await self._same_program(suggestion.base_text, file.source):
                    continue
                await self._check_quietly(uri, file, suggestion)

    async def _check_quietly(self, uri: str, file: FileRequest, suggestion: Suggestion) -> None:
        from accelopt_agent.request import Repetition
        from accelopt_lsp.features.search_line import SearchLine

        began, line = time.monotonic(), SearchLine(suggestion.kernel, 1)
        try:
            version, end = await self._made_again(uri, file, Repetition.of(suggestion), line)
        except UserError as error:
            outcome = f"could not be checked ({error})"
        else:
            if version is None and end.ending == "done":
                self._suggestions.note_check(uri, suggestion, holds=False)
            outcome = "still holds" if version is not None else f"was not confirmed ({end.reason})"
        name, seconds = PurePath(file.path).name, time.monotonic() - began
        what = f"{name}: {version_name(suggestion)} {outcome} with the saved text"
        self._editor.note(f"{what}; {seconds:.1f} s.", "info")

    async def _same_program(self, base: str, source: KernelSource) -> bool:
        """Return whether two texts differ in layout and comments alone."""
        before = await self._parser.find_kernels(base)
        parts = [(s.rest_hash, [(k.name, k.content_hash) for k in s.kernels]) for s in (before, source)]
        return parts[0] == parts[1]
