"""Answer with the charts of a kernel from what is known, and tell who asked when more is."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelopt_lsp.errors import UserError
from accelopt_lsp.features.wording import headline, profiled_at
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.git import commits
from accelopt_lsp.server.profiles import Profiles
from accelopt_lsp.server.session import Session
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_lsp.state.version import Commit

if TYPE_CHECKING:
    from accelopt_agent.search.history import PastRun

#: The notification that the charts of a document, ``{"uri"}``, which were asked for, are others.
PICTURES = "accelopt/pictures"


@dataclass(frozen=True)
class _Beside:
    """What is known of a document's kernels in other places: their last searches, the commits since it was opened."""

    runs: tuple[PastRun, ...] = ()
    commits: tuple[Commit, ...] = ()


class PictureView:
    def __init__(self, session: Session, profiles: Profiles) -> None:
        self._profiles = profiles
        self._editor, self._state, self._documents = session.editor, session.state, session.documents
        self._service, self._configuration, self._tasks = (
            session.service,
            session.configuration,
            session.tasks,
        )
        self._shown: set[str] = set()
        self._looked: dict[str, _Beside] = {}
        session.work.listen(self._look_again)
        session.state.changed.listen(self._document_changed)

    def actions(self) -> Mapping[str, Handler]:
        return {"pictures": self.pictures}

    def pictures(self, args: Arguments) -> dict[str, Any]:
        """Return the charts of a kernel: the one named, the one at the line, or the first of the file.

        Where they are ``shown`` no more, there are none: nobody is told of others, and profiles have no schedule.
        """
        if not args.shown:
            self._shown.discard(args.document())
            self._looked.pop(args.document(), None)
            self._profiles.with_timeline.discard(args.document())
            return _without("", "")
        from accelopt_lsp.features.pictures import charts  # no editor that shows none pays for it
        from accelopt_lsp.features.search_tree import search_tree

        self._shown.add(args.document())  # whose kernels may not be read yet
        state = self._state.get(args.document())
        kernel = _meant(state, args) if state is not None else None
        if state is None or kernel is None:
            return _without("", "There is no Triton or NKI kernel in this file.")
        if state.uri not in self._looked:
            self._looked[state.uri] = _Beside()
            self._tasks.start(self._look(state))
        shown, name = kernel.shown, kernel.kernel.name
        if shown is None:
            return _without(name, "It was not profiled yet: save the file.")
        source = self._documents.lines(self._documents.opened(state.uri)).lines
        notes = [headline(shown, state.run_findings), profiled_at(shown)]
        beside = self._looked[state.uri]
        offered = {s.summary: s.id for s in kernel.suggestions}
        runs = (run for run in beside.runs if run.run.kernel == name)
        trees = filter(None, (search_tree(run, offered, kernel.kernel.content_hash) for run in runs))
        missing = shown.dialect == "nki" and shown.latency.us is not None and shown.timeline is None
        return {
            "kernel": name,
            "title": name,
            "note": ("Before this edit: " if kernel.old else "") + ". ".join(filter(None, notes)),
            "schedule": missing and not kernel.old and state.uri not in self._profiles.with_timeline,
            "charts": [
                asdict(chart) for chart in (*charts(shown, source, kernel.versions, beside.commits), *trees)
            ],
        }

    def _look_again(self) -> None:
        """Look again at the memory and the repository after a job began or ended, for the charts that are shown."""
        for uri in self._shown & self._looked.keys():
            if (state := self._state.get(uri)) is not None:
                self._tasks.start(self._look(state))

    async def _look(self, state: Document) -> None:
        """Read the last searches and the commits of a document, and tell who shows its charts where they are others."""
        versions = [version.at for kernel in state.kernels for version in kernel.versions]
        runs: list[PastRun] = []
        log: tuple[Commit, ...] = ()
        with contextlib.suppress(UserError):  # no memory: nothing was searched
            runs = await self._service.last_runs(state.path, await self._configuration.of(state.path))
        if state.untrusted is None and versions:
            with contextlib.suppress(UserError):  # the folder is no repository
                log = await commits(Path(state.path), min(versions))
        beside = _Beside(tuple(runs), log)
        if self._looked.get(state.uri, beside) != beside:
            self._looked[state.uri] = beside
            self._document_changed(state)

    def _document_changed(self, state: Document) -> None:
        if self._editor.client.pictures and state.uri in self._shown:
            self._editor.notify(PICTURES, {"uri": state.uri})


def _without(kernel: str, note: str) -> dict[str, Any]:
    """Return the answer without charts."""
    return {"kernel": kernel, "title": kernel or "AccelOpt", "note": note, "schedule": False, "charts": []}


def _meant(state: Document, args: Arguments) -> KernelState | None:
    if args.kernel is not None:
        return state.kernel(args.kernel)
    at = state.kernel_at(args.line) if args.line is not None else None
    return at or next((k for k in state.kernels if k.shown is not None), next(iter(state.kernels), None))
