"""Explain a suggestion: a page with the counters that moved and, where a model may be asked, its words."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from functools import partial

from accelopt_lsp.features.wording import CHANGE_HEADING, speedup
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.pages import Pages
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.suggestions import SuggestionActions
from accelopt_lsp.state.jobs import BackgroundJob

#: An explanation that is there sooner than this, in seconds, shows no progress.
QUICK = 0.5


class Explanations:
    def __init__(self, session: Session, suggestions: SuggestionActions, pages: Pages) -> None:
        self._editor, self._jobs, self._service = session.editor, session.jobs, session.service
        self._configuration, self._suggestions = session.configuration, suggestions
        self._consent, self._pages = session.consent, pages

    def actions(self) -> Mapping[str, Handler]:
        return {"explain": self.explain}

    def explain(self, args: Arguments) -> BackgroundJob:
        """Explain the suggestion ``args.id``. One that is being explained already is the answer."""
        uri, kernel = self._suggestions.target(args)
        new = BackgroundJob.of("explain", uri, kernel, id=args.id or "")
        same = (job for job in self._jobs.running(uri, "explain") if job.title == new.title)
        return next(same, None) or self._jobs.start(new, self._run(new, args))

    async def _run(self, job: BackgroundJob, args: Arguments) -> None:
        suggestion, uri = await self._suggestions.find(args.id, args.uri)
        settings = await self._configuration.of(file_path(uri) or suggestion.file)
        await self._consent.request(suggestion.file, settings)
        name, about = f"explanation of {suggestion.kernel}", f"{suggestion.file} {suggestion.id}"
        title = f"{suggestion.kernel}: why {speedup(suggestion.speedup)}"
        asks_model = settings.untrusted is None
        async with (
            self._editor.progress(job.title, partial(self._jobs.cancel, job.id), delay=QUICK),
            aclosing(self._service.explain(suggestion.id, settings, asks_model)) as growing,
        ):
            text = ""
            async for explanation in growing:
                newest = explanation.text
                if self._pages.grow:
                    await self._pages.show(name, about, title, newest, newest, newer=bool(text))
                text = newest
            if text and not self._pages.grow:
                await self._pages.show(name, about, title, text, text.partition(CHANGE_HEADING)[0].strip())
