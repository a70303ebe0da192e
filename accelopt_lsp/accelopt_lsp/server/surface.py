"""Be what the service speaks to: its troubles become the status and messages, its questions go to the editor."""

from __future__ import annotations

from collections.abc import Callable

from accelopt_agent.model.editor_request import EditorModelReply, EditorModelRequest
from accelopt_lsp.server.connection import EditorConnection
from accelopt_lsp.server.model_access import EditorModelClient
from accelopt_lsp.server.status import StatusLine
from accelopt_lsp.service.surface import Surface


class EditorSurface(Surface):
    """``changed`` is called when the status says something else."""

    def __init__(
        self,
        editor: EditorConnection,
        status: StatusLine,
        models: EditorModelClient,
        changed: Callable[[], None],
    ) -> None:
        self._editor, self._status, self._models, self._changed = editor, status, models, changed

    def host_problem(self, reason: str | None) -> None:
        """Say in the status, once, that a configured host cannot be reached (why), or can again (None)."""
        if reason is None:
            self._status.host_up()
        else:
            self._status.host_down(reason)
        self._changed()

    def memory_problem(self, reason: str) -> None:
        self._editor.say(reason, "warning")

    def isolation_problem(self, line: str) -> None:
        """Say in the status, as long as the server runs, that a host does not isolate kernels completely."""
        self._status.isolation = line
        self._status.log(line)
        self._changed()

    async def complete(self, question: EditorModelRequest) -> EditorModelReply:
        return await self._models.complete(question)
