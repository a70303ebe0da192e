"""Answer with the charts of a kernel from what is known, and tell who asked when more is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from accelopt_lsp.features.wording import headline, profiled_at
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.profiles import Profiles
from accelopt_lsp.server.session import Session
from accelopt_lsp.state.state_store import Document, KernelState

#: The notification that the charts of a document, ``{"uri"}``, which were asked for, are others.
PICTURES = "accelopt/pictures"


class PictureView:
    def __init__(self, session: Session, profiles: Profiles) -> None:
        self._profiles = profiles
        self._editor, self._state, self._documents = session.editor, session.state, session.documents
        self._shown: set[str] = set()
        session.state.changed.listen(self._document_changed)

    def actions(self) -> Mapping[str, Handler]:
        return {"pictures": self.pictures}

    def pictures(self, args: Arguments) -> dict[str, Any]:
        """Return the charts of a kernel: the one named, the one at the line, or the first of the file.

        Where they are ``shown`` no more, there are none: nobody is told of others, and profiles have no schedule.
        """
        if not args.shown:
            self._shown.discard(args.document())
            self._profiles.with_timeline.discard(args.document())
            return _without("", "")
        from accelopt_lsp.features.pictures import charts  # no editor that shows none pays for it

        state = self._state.get(args.document())
        kernel = _meant(state, args) if state is not None else None
        if state is None or kernel is None:
            return _without("", "There is no Triton or NKI kernel in this file.")
        self._shown.add(state.uri)
        shown, name = kernel.shown, kernel.kernel.name
        if shown is None:
            return _without(name, "It was not profiled yet: save the file.")
        source = self._documents.lines(self._documents.opened(state.uri)).lines
        notes = [headline(shown, state.run_findings), profiled_at(shown)]
        missing = shown.dialect == "nki" and shown.latency.us is not None and shown.timeline is None
        return {
            "kernel": name,
            "title": name,
            "note": ("Before this edit: " if kernel.old else "") + ". ".join(filter(None, notes)),
            "schedule": missing and not kernel.old and state.uri not in self._profiles.with_timeline,
            "charts": [asdict(chart) for chart in charts(shown, source, kernel.versions)],
        }

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
