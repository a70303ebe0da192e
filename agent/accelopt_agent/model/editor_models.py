"""Queries the editor's own models through the editor, with its consent dialog and its account."""

from __future__ import annotations

import asyncio

from accelopt_agent.model.answer import MOST_CHARACTERS_PER_TOKEN, Answer, estimated_tokens, repeats_itself
from accelopt_agent.model.client import ModelCallError, query_model
from accelopt_agent.model.editor_request import FAULTS, Complete, EditorModelReply, EditorModelRequest
from accelopt_agent.model.keys import without_key
from accelopt_agent.model.settings import EDITOR, ModelSettings
from accelopt_profiling.waiting import within


class EditorModels:
    """A ``client.ModelQuery`` that asks the editor where the settings say so, and over HTTP where they name an
    address."""

    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    async def __call__(
        self,
        settings: ModelSettings,
        system: str,
        user: str,
        *,
        backoff_seconds: float = 1.0,
    ) -> Answer:
        """As ``query_model``.

        An editor's model is asked once: the editor itself tries again where that helps.

        Raises:
            ModelCallError: there is no usable answer.
        """
        if settings.base_url != EDITOR:
            return await query_model(settings, system, user, backoff_seconds=backoff_seconds)
        where = f"The editor's model {settings.model}"
        question = EditorModelRequest(settings.model, system, user, settings.answer_tokens)
        try:
            reply = await within(settings.longest_seconds, self._complete(question))
        except asyncio.TimeoutError:
            message = f"{where} was not done after {settings.longest_seconds:g} s."
            raise ModelCallError(message, final=True) from None
        counted = reply.tokens_in is not None and reply.tokens_out is not None
        was_sent = bool(reply.text) or not reply.fault
        tokens_in = (
            reply.tokens_in
            if reply.tokens_in is not None
            else estimated_tokens(len(system + user)) * was_sent
        )
        tokens_out = reply.tokens_out if reply.tokens_out is not None else estimated_tokens(len(reply.text))
        fault, final = _fault(reply, settings.answer_tokens)
        if fault:
            raise ModelCallError(
                f"{where} {fault}", final=final, tokens_in=tokens_in, tokens_out=tokens_out,
                estimated=not counted and was_sent,
            )  # fmt: skip
        return Answer(reply.text, tokens_in, tokens_out, estimated=not counted)


def _fault(reply: EditorModelReply, answer_tokens: int) -> tuple[str, bool]:
    """Describe what is wrong with a reply, and whether repeating the query is useless; "" if nothing is."""
    if reply.fault:
        what, final = FAULTS.get(reply.fault, FAULTS["failed"])
        detail = without_key(reply.message, None)
        return f"{what}: {detail}" if detail else f"{what}.", final
    if not reply.text.strip():
        return "gave an empty answer.", False
    if len(reply.text) > answer_tokens * MOST_CHARACTERS_PER_TOKEN:
        return "writes far more than it was asked for and was stopped.", False
    if repeats_itself(reply.text):
        return "repeats itself without end.", False
    return "", False
