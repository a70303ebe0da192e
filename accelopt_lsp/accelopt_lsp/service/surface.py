"""Define what a service tells and asks whoever it works for: an editor, a terminal, or nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelopt_agent.model.editor_request import EditorModelReply, EditorModelRequest


class Surface:
    """What a service tells and asks whoever it works for; here nobody listens."""

    def host_problem(self, reason: str | None) -> None:
        """Hear that a configured host cannot be reached and another one is used, or (None) that it can."""

    def memory_problem(self, reason: str) -> None:
        """Hear why the memory cannot be used; once per reason."""

    def isolation_problem(self, line: str) -> None:
        """Hear about a host that does not isolate kernels completely; once per host."""

    async def complete(self, question: EditorModelRequest) -> EditorModelReply:
        """Have one of the editor's models asked."""
        from accelopt_agent.model.editor_request import no_models  # a command line has no time for it

        return await no_models(question)
