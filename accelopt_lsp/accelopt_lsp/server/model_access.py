"""Ask the person whether a model may be asked, and ask the editor's own models.

A configured model is asked only after the person agreed, once per workspace and address. The editor's models are asked
through the request ``accelopt/model/complete``, only while a search or an explanation runs, which nothing but a person
begins: saving a file asks nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelopt_agent.model.editor_request import FAULTS, EditorModelReply, EditorModelRequest
from accelopt_lsp.server.connection import EditorConnection, EditorRefusedError
from accelopt_lsp.settings.load import Settings
from accelopt_lsp.state.jobs import BackgroundTasks, JobRegistry
from accelopt_profiling.waiting import within

if TYPE_CHECKING:
    from accelopt_agent.model.consent import Consent

log = logging.getLogger(__name__)

AGREE, NOT_NOW = "Send it from now on", "Not now"

#: How long a search waits for the answer, in seconds; then it begins without the model.
PATIENCE = 120.0

METHOD = "accelopt/model/complete"

#: What the editor may show the person when it asks whether its model may be used.
WHY = "AccelOpt asks for faster versions of your kernel, or for the reason why one is faster."


class ConsentPrompt:
    """Asks whether kernels of a workspace may be sent to the configured model."""

    def __init__(self, editor: EditorConnection, tasks: BackgroundTasks) -> None:
        self._editor, self._tasks = editor, tasks
        self._declined: set[Consent] = set()
        self._open: dict[Consent, asyncio.Task[None]] = {}

    async def request(
        self, path: str, settings: Settings, *, again: bool = False, asking: Callable[[], None] = lambda: None
    ) -> None:
        """Ask, where a model is configured that nobody agreed to yet, and wait a while for the answer; one that comes
        later counts too. Who said "not now" is asked again in another session, or with ``again``. ``asking`` is
        called where a question is open."""
        if not settings.asks_models or settings.untrusted is not None or not self._editor.asks:
            return
        consent, question = await asyncio.to_thread(_wanted, path, settings)
        if consent is None or (consent in self._declined and not again):
            return
        if consent not in self._open:
            self._open[consent] = self._tasks.start(self._ask(consent, question))
        asking()
        with contextlib.suppress(asyncio.TimeoutError):
            await within(PATIENCE, asyncio.shield(self._open[consent]))

    async def _ask(self, consent: Consent, question: str) -> None:
        try:
            answer = await self._editor.ask(question, [AGREE, NOT_NOW])
            if answer is None:
                return
            if answer != AGREE:
                self._declined.add(consent)
                return
            self._declined.discard(consent)
            await asyncio.to_thread(_agree, consent)
        except OSError as error:
            self._editor.say(f"Your agreement cannot be kept: {error}.", "warning")
        except EditorRefusedError as error:
            log.warning("the client did not ask the person: %s", error)
        finally:
            del self._open[consent]


def _wanted(path: str, settings: Settings) -> tuple[Consent | None, str]:
    """Return the agreement that is missing, and the question to the person."""
    from accelopt_agent.model.consent import ConsentStore, required_consent, what_is_sent
    from accelopt_lsp.models import configured_team, consent_folder

    team, workspace = configured_team(settings), consent_folder(settings, Path(path))
    if team is None or ConsentStore().missing(team.planner, workspace) is None:
        return None, ""
    consent = required_consent(team.planner, workspace)
    where = "of this editor" if team.planner.of_editor else f"at {consent.address}"
    sent = "; ".join(what_is_sent(team.planner.share, consent.key))
    return (
        consent,
        f"May kernels below {consent.workspace} be sent to {team.models} {where}? Sent are: {sent}.",
    )


def _agree(consent: Consent) -> None:
    from accelopt_agent.model.consent import ConsentStore

    ConsentStore().give(consent)


class EditorModelClient:
    """Asks the editor to ask one of its models."""

    def __init__(self, editor: EditorConnection, jobs: JobRegistry) -> None:
        self._editor, self._jobs = editor, jobs

    async def complete(self, question: EditorModelRequest) -> EditorModelReply:
        """Return the editor's reply. Being cancelled takes the question back."""
        if not self._editor.client.models:
            return EditorModelReply(fault="unsupported")
        if not any(job.kind in ("optimize", "explain") for job in self._jobs.running()):
            return EditorModelReply(fault="not-asked-for")
        params = {
            "model": question.model,
            "system": question.system,
            "user": question.user,
            "answerTokens": question.answer_tokens,
            "justification": WHY,
        }
        try:
            return _reply(await self._editor.request(METHOD, params))
        except EditorRefusedError as error:
            return EditorModelReply(fault="failed", message=str(error))


def _reply(answer: Any) -> EditorModelReply:
    """Return the client's answer; anything of a wrong type counts as missing."""
    text, fault, message = (getattr(answer, name, None) for name in ("text", "fault", "message"))
    read, written = _count(getattr(answer, "tokensIn", None)), _count(getattr(answer, "tokensOut", None))
    if isinstance(fault, str) and fault:
        return EditorModelReply(
            _text(text),
            read,
            tokens_out=written,
            fault=fault if fault in FAULTS else "failed",
            message=_text(message),
        )
    if not isinstance(text, str):
        return EditorModelReply(fault="failed", message="the editor answered what is no answer")
    return EditorModelReply(text, read, written)


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
