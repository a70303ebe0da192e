"""Explain a suggestion: at once from the counters, then, where a model may be asked, in its words too."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

from accelopt_agent.events import ModelCall
from accelopt_agent.model.client import ModelCallError, ModelQuery, query_model
from accelopt_agent.model.explain import explain, summarizer_user
from accelopt_agent.model.ledger import ledger_line
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.search.versions import MeasuredVersions, measured_versions
from accelopt_agent.suggestions.lesson import EXPLAINED, keep_explanation, kept_explanation
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.features.explanation import ModelExplanation, explanation
from accelopt_lsp.service.protocol import Explanation
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.memory import Memory
from accelopt_profiling.plain import from_plain, to_plain

T = TypeVar("T")


async def explanations(
    suggestion: Suggestion,
    memory: Memory | None,
    model: ModelSettings | None,
    why_not: str,
    *,
    query: ModelQuery = query_model,
    backoff_seconds: float = 1.0,
) -> AsyncGenerator[Explanation, None]:
    """Yield the page from the counters and, with a ``model``, once more with its words. ``why_not`` tells why
    none is asked.

    What a model said about the same question is in the memory and not paid for again.
    """
    versions = await _from(memory, lambda m: measured_versions(m, suggestion), MeasuredVersions())

    async def page(model_words: ModelExplanation | None, remark: str) -> str:
        return await asyncio.to_thread(explanation, suggestion, versions, model_words, remark)

    if model is None:
        reason = why_not or "No model is configured, so this is put together from the counters alone."
        yield Explanation(await page(None, reason))
        return
    key = _key(suggestion, model, versions)
    if stored := await _from(memory, lambda m: _kept(m, suggestion, key), None):
        text, call = stored
        remark = f"From the memory; it had taken {ledger_line([call])}"
        yield Explanation(await page(ModelExplanation(model.model, text), remark), model.model, calls=(call,))
        return
    asking = f"The model {model.model} is being asked for its explanation..."
    yield Explanation(await page(None, asking), pending_model=model.model)
    calls: list[ModelCall] = []
    try:
        text = await explain(
            model, suggestion, versions, book=calls.append, query=query, backoff_seconds=backoff_seconds
        )
    except ModelCallError as fault:
        remark = f"{fault} This is put together from the counters alone. {ledger_line(calls)}"
        yield Explanation(await page(None, remark.strip()), calls=tuple(calls))
        return
    data = to_plain({"suggestion": suggestion.id, "text": text, "call": calls[0]})
    await _from(memory, lambda m: keep_explanation(m, suggestion, data, key), None)
    yield Explanation(
        await page(ModelExplanation(model.model, text), ledger_line(calls)), model.model, calls=tuple(calls)
    )


def _key(suggestion: Suggestion, model: ModelSettings, versions: MeasuredVersions) -> str:
    question = f"{model.base_url}\0{summarizer_user(suggestion, versions, model.share)}"
    return f"{EXPLAINED} {suggestion.id} {model.model} {hashlib.sha256(question.encode()).hexdigest()[:16]}"


def _kept(memory: Memory, suggestion: Suggestion, key: str) -> tuple[str, ModelCall] | None:
    event = kept_explanation(memory, suggestion, key)
    try:
        return (str(event.data["text"]), from_plain(ModelCall, event.data["call"])) if event else None
    except (KeyError, ValueError):
        return None


async def _from(memory: Memory | None, call: Callable[[Memory], T], otherwise: T) -> T:
    """Return what the memory answers; ``otherwise`` without one: an explanation needs none."""
    if memory is None:
        return otherwise
    try:
        return await asyncio.to_thread(call, memory)
    except MemoryUnavailableError:
        return otherwise
