"""Several proved versions of one kernel: listed for a client that shows them itself, else asked about."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.wording import duration, origin, speedup, version_name
from accelopt_lsp.server.commands import Arguments
from accelopt_lsp.state.jobs import BackgroundJob

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer


class Choosing:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server

    def versions(self, args: Arguments) -> list[dict[str, Any]]:
        """The suggestions for a kernel (named, at the 1-based line, or all of the file), best first per kernel.

        Raises:
            UserError: the arguments name no document.
        """
        uri = args.document("versions")
        return [described(uri, suggestion) for suggestion in self._offers(uri, args)]

    def choose(self, args: Arguments) -> BackgroundJob:
        """Ask the person which version of a kernel they want, then as ``accept`` with ``ask`` does."""
        job = BackgroundJob("accept", args.document("choose"), "Choosing a version", args.kernel)
        return self._server.jobs.start(job, self._run(args))

    async def _run(self, args: Arguments) -> None:
        uri = args.document("choose")
        offers = self._offers(uri, args)
        if not offers:
            raise UserError(f"Nothing faster is known for {args.kernel or 'this file'}; optimize it first.")
        if (chosen := offers[0] if len(offers) == 1 else await self._asked(offers)) is not None:
            await self._server.decisions.settle(replace(args, id=chosen.id, ask=True))

    def _offers(self, uri: str, args: Arguments) -> list[Suggestion]:
        state = self._server.board.get(uri)
        if state is None:
            return []
        kernels = [k for k in state.kernels if args.kernel in (None, k.kernel.name)]
        if args.kernel is None and args.line is not None and (at := state.kernel_at(args.line)):
            kernels = [at]
        return [suggestion for kernel in kernels for suggestion in kernel.offers]

    async def _asked(self, offers: list[Suggestion]) -> Suggestion | None:
        titles = {_line(number, suggestion): suggestion for number, suggestion in enumerate(offers, 1)}
        items = [types.MessageActionItem(title) for title in titles]
        message = (
            f"{len(offers)} versions of {offers[0].kernel} are proved to be right and faster. Look at which?"
        )
        params = types.ShowMessageRequestParams(types.MessageType.Info, message, items)
        answer = await self._server.answer(self._server.window_show_message_request_async(params))
        return titles.get(answer.title) if answer is not None else None


def described(uri: str, suggestion: Suggestion) -> dict[str, Any]:
    """A suggestion in words, for a list to choose from."""
    return {
        "id": suggestion.id,
        "uri": uri,
        "kernel": suggestion.kernel,
        "title": version_name(suggestion),
        "speedup": speedup(suggestion.speedup),
        "latency": f"{duration(suggestion.fast)} on {suggestion.target}",
        "origin": origin(suggestion),
        "summary": suggestion.summary,
    }


def _line(number: int, suggestion: Suggestion) -> str:
    return (
        f"{number}. {speedup(suggestion.speedup)} · {suggestion.summary.rstrip('.')} · {origin(suggestion)}"
    )
