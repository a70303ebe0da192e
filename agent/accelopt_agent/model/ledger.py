"""The ledger of a run's model calls: each is booked when it is made; sums per role and model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from accelopt_agent.events import ModelCall
from accelopt_agent.model.answer import Answer, estimated_tokens
from accelopt_agent.model.client import ModelCallError, ModelQuery
from accelopt_agent.model.settings import ModelSettings


def ledger_entry(
    role: str, settings: ModelSettings, outcome: Answer | ModelCallError, seconds: float
) -> ModelCall:
    """Build the entry for one call and its result. A fault's entry holds no key and no text of the answer."""
    money = settings.money(outcome.tokens_in, outcome.tokens_out, outcome.tokens_cached)
    fault = str(outcome) if isinstance(outcome, ModelCallError) else ""
    return ModelCall(
        role,
        settings.model,
        tokens_in=outcome.tokens_in,
        tokens_out=outcome.tokens_out,
        seconds=seconds,
        money=money,
        fault=fault,
        tokens_cached=outcome.tokens_cached,
        estimated=outcome.estimated,
    )


async def query_booked(
    query: ModelQuery,
    role: str,
    settings: ModelSettings,
    system: str,
    user: str,
    book: Callable[[ModelCall], None],
    backoff_seconds: float = 1.0,
) -> tuple[str, ModelCall]:
    """Send a query by ``query``.

    Return the answer's text and the entry that ``book`` got, which gets one of a fault too.

    Raises:
        ModelCallError: as ``query``.
    """
    started = time.monotonic()
    try:
        answer = await query(settings, system, user, backoff_seconds=backoff_seconds)
    except ModelCallError as fault:
        book(ledger_entry(role, settings, fault, time.monotonic() - started))
        raise
    except asyncio.CancelledError:  # the question was sent all the same
        tokens = estimated_tokens(len(system) + len(user))
        no_answer = ModelCallError("The search ended before the answer.", tokens_in=tokens, estimated=True)
        book(ledger_entry(role, settings, no_answer, time.monotonic() - started))
        raise
    call = ledger_entry(role, settings, answer, time.monotonic() - started)
    book(call)
    return answer.text, call


@dataclass(frozen=True)
class LedgerAccount:
    """The use of one model by one role.

    ``faults`` counts the calls without a usable answer; ``estimated`` says that the server did not count all tokens.
    """

    role: str
    model: str
    calls: int
    faults: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    seconds: float
    money: float | None
    estimated: bool


def accounts(calls: Iterable[ModelCall]) -> list[LedgerAccount]:
    """Return the sums per role and model, in the order of their first calls."""
    groups: dict[tuple[str, str], list[ModelCall]] = {}
    for call in calls:
        groups.setdefault((call.role, call.model), []).append(call)
    return [_account(role, model, group) for (role, model), group in groups.items()]


def total(calls: Iterable[ModelCall]) -> LedgerAccount:
    """Return the sum of all calls."""
    return _account("all", "", list(calls))


def ledger_line(calls: Sequence[ModelCall]) -> str:
    """Sum up the calls in one sentence; "" without calls."""
    if not calls:
        return ""
    sums = total(calls)
    about = "about " if sums.estimated else ""
    cached = f" ({sums.tokens_cached:,} of them cached)" if sums.tokens_cached else ""
    cost = "" if sums.money is None else f", cost {sums.money:.4f}"
    return (
        f"{sums.calls} model call{'' if sums.calls == 1 else 's'}: {about}{sums.tokens_in:,} tokens in{cached}, "
        f"{sums.tokens_out:,} out, {sums.seconds:.0f} s{cost}."
    )


def _account(role: str, model: str, calls: list[ModelCall]) -> LedgerAccount:
    priced = [call.money for call in calls if call.money is not None]
    return LedgerAccount(
        role,
        model,
        calls=len(calls),
        faults=sum(bool(call.fault) for call in calls),
        tokens_in=sum(call.tokens_in for call in calls),
        tokens_cached=sum(call.tokens_cached for call in calls),
        tokens_out=sum(call.tokens_out for call in calls),
        seconds=sum(call.seconds for call in calls),
        money=sum(priced) if priced else None,
        estimated=any(call.estimated for call in calls),
    )
