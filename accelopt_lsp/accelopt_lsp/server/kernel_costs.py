"""Answer with what is known of a document's kernels as text, for who cannot see lenses and hovers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelopt_lsp.features.diagnostics import diagnostics
from accelopt_lsp.features.hover import hover
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.session import Session
from accelopt_lsp.state.state_store import Document


class KernelCosts:
    def __init__(self, session: Session) -> None:
        self._state, self._configuration = session.state, session.configuration

    def actions(self) -> Mapping[str, Handler]:
        return {"costs": self.costs}

    def costs(self, args: Arguments) -> dict[str, Any]:
        """Return the hover of each kernel of an open document, and the document's findings."""
        state = self._state.get(args.document())
        if state is None:
            return {"kernels": [], "findings": []}
        settings = self._configuration.cached(state.path)
        kernels = [k.kernel for k in state.kernels]
        shown = diagnostics(state, settings.ignored if settings else ())
        return {
            "kernels": [{"kernel": k.name, "line": k.line, "text": _text(state, k.line)} for k in kernels],
            "findings": [
                {"line": f.line, "code": f.code, "severity": f.severity, "message": one.message}
                for one in shown
                if (f := one.finding)
            ],
        }


def _text(state: Document, line: int) -> str:
    return hover(state, line, markdown=False) or "It was not profiled."
