"""Ask the person, once per workspace and address, whether a configured model may be sent their kernels."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from accelopt_lsp.settings.load import Settings
from accelopt_profiling.waiting import within

if TYPE_CHECKING:
    from accelopt_agent.model.consent import Consent
    from accelopt_lsp.server.server import AccelOptServer

log = logging.getLogger(__name__)

AGREE, NOT_NOW = "Send it from now on", "Not now"

#: How long a search waits for the answer, in seconds; then it begins without the model.
PATIENCE = 120.0


class Consenting:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server
        self._declined: set[Consent] = set()
        self._open: dict[Consent, asyncio.Task[None]] = {}

    async def settle(
        self, path: str, settings: Settings, *, again: bool = False, asking: Callable[[], None] = lambda: None
    ) -> None:
        """Ask, where a model is configured that nobody agreed to yet, and wait a while for the answer; one that comes
        later counts too. Who said "not now" is asked again in another session, or with ``again``. ``asking`` is
        called where a question is open."""
        server = self._server
        if (
            not settings.model.configured
            or not server.client.trusted
            or not server.client.has("window", "show_message")
        ):
            return
        wanted, question = await asyncio.to_thread(_wanted, path, settings)
        if wanted is None or (wanted in self._declined and not again):
            return
        if wanted not in self._open:
            self._open[wanted] = server.background(self._ask(wanted, question))
        asking()
        with contextlib.suppress(asyncio.TimeoutError):
            await within(PATIENCE, asyncio.shield(self._open[wanted]))

    async def _ask(self, wanted: Consent, question: str) -> None:
        server = self._server
        items = [types.MessageActionItem(AGREE), types.MessageActionItem(NOT_NOW)]
        params = types.ShowMessageRequestParams(types.MessageType.Info, question, items)
        try:
            answer = await server.answer(server.window_show_message_request_async(params))
            if answer is None:
                return
            if answer.title != AGREE:
                self._declined.add(wanted)
                return
            self._declined.discard(wanted)
            await asyncio.to_thread(_agree, wanted)
        except OSError as error:
            server.say(f"Your agreement cannot be kept: {error}.", types.MessageType.Warning)
        except JsonRpcException as error:
            log.warning("the client did not ask the person: %s", error)
        finally:
            del self._open[wanted]


def _wanted(path: str, settings: Settings) -> tuple[Consent | None, str]:
    """The agreement that is missing, and the question to the person."""
    from accelopt_agent.model.consent import ConsentStore, required_consent, what_is_sent
    from accelopt_lsp.models import configured_team, consent_folder

    team, workspace = configured_team(settings), consent_folder(settings, Path(path))
    if team is None or ConsentStore().missing(team.planner, workspace) is None:
        return None, ""
    wanted = required_consent(team.planner, workspace)
    where = "of this editor" if team.planner.of_editor else f"at {wanted.address}"
    sent = "; ".join(what_is_sent(team.planner.share))
    return wanted, f"May kernels below {wanted.workspace} be sent to {team.models} {where}? Sent are: {sent}."


def _agree(wanted: Consent) -> None:
    from accelopt_agent.model.consent import ConsentStore

    ConsentStore().give(wanted)
