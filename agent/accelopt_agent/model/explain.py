"""The summarizer: why a suggestion is faster, in a few sentences with the numbers."""

from __future__ import annotations

import time
from collections.abc import Callable

from accelopt_agent.events import ModelCall
from accelopt_agent.model.client import ModelFault, ask
from accelopt_agent.model.digest import digest, number
from accelopt_agent.model.ledger import entry
from accelopt_agent.model.prompt import render
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.model.windows import change
from accelopt_agent.suggestion import Suggestion
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import Quantity


async def explain(
    settings: ModelSettings,
    suggestion: Suggestion,
    slow: KernelMeasurement,
    *,
    book: Callable[[ModelCall], None] | None = None,
    backoff_seconds: float = 1.0,
) -> str:
    """Why ``suggestion`` is faster than what was measured as ``slow``. ``book`` is given the ledger's entry.

    Raises:
        ModelFault: there is no answer; the message says why.
    """
    system = render(f"{suggestion.dialect}/summarizer", target=suggestion.target)
    user = summarizer_user(suggestion, slow)
    started = time.monotonic()
    booked = book or (lambda call: None)
    try:
        answer = await ask(settings, system, user, backoff_seconds=backoff_seconds)
    except ModelFault as fault:
        booked(entry("summarizer", settings, fault, time.monotonic() - started))
        raise
    booked(entry("summarizer", settings, answer, time.monotonic() - started))
    return answer.text.strip()


def summarizer_user(suggestion: Suggestion, slow: KernelMeasurement) -> str:
    """The digest of the slow version, the change and both times."""
    return render(
        "summarizer_user",
        kernel=suggestion.kernel,
        digest=digest(slow),
        change=change(suggestion.base_text, suggestion.text),
        slow=_time(suggestion.slow),
        fast=_time(suggestion.fast),
    )


def _time(latency: Latency) -> str:
    return number(Quantity(latency.us, latency.known, "us", latency.low_us, latency.high_us))
