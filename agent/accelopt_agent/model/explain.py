"""Explains why a suggestion is faster, in a few sentences with the numbers: the summarizer role."""

from __future__ import annotations

from collections.abc import Callable

from accelopt_agent.events import ModelCall
from accelopt_agent.model.client import ModelQuery, query_model
from accelopt_agent.model.ledger import query_booked
from accelopt_agent.model.prompt_templates import render
from accelopt_agent.model.role_context import change, digest, kernel_alone, number
from accelopt_agent.model.settings import ModelSettings, Share
from accelopt_agent.search.node import Node
from accelopt_agent.search.versions import MeasuredVersions
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_profiling.measurement import Dialect, KernelMeasurement, Latency
from accelopt_profiling.quantity import Quantity

#: How many of the counters that moved the summarizer is shown.
COUNTERS_SHOWN = 10
#: How many lines of the change a lesson is written about.
LESSON_LINES = 60


async def explain(
    settings: ModelSettings,
    suggestion: Suggestion,
    versions: MeasuredVersions,
    *,
    book: Callable[[ModelCall], None] | None = None,
    backoff_seconds: float = 1.0,
    query: ModelQuery = query_model,
) -> str:
    """Ask the summarizer why ``suggestion`` is faster, given the measurements of both ``versions``. ``book`` receives
    the ledger's entry.

    Raises:
        ModelCallError: there is no answer; the message says why.
    """
    system = render(f"{suggestion.dialect}/summarizer", target=suggestion.target)
    user = summarizer_user(suggestion, versions, settings.share)
    booked = book or (lambda call: None)
    text, _ = await query_booked(
        query,
        "summarizer",
        settings=settings,
        system=system,
        user=user,
        book=booked,
        backoff_seconds=backoff_seconds,
    )
    return text.strip()


def summarizer_user(suggestion: Suggestion, versions: MeasuredVersions, share: Share = "file") -> str:
    """Return the digest of the slow version, both times, the counters that moved, and the change."""
    before, after = suggestion.base_text, suggestion.text
    if share == "kernel":
        before, after = kernel_alone(before, suggestion.kernel), kernel_alone(after, suggestion.kernel)
    return render(
        "summarizer_user",
        kernel=suggestion.kernel,
        digest=digest(versions.slow or _known_from(suggestion)),
        counters=_counters(versions),
        change=change(before, after),
        slow=_time(suggestion.slow),
        fast=_time(suggestion.fast),
    )


def lesson_user(slow: Node, fast: Node, share: Share = "file") -> str:
    """Return the question why ``fast`` is faster than ``slow``, two versions of one search."""
    before, after = slow.text, fast.text
    if share == "kernel":
        before, after = kernel_alone(before, slow.kernel.name), kernel_alone(after, fast.kernel.name)
    times = slow.beside(fast)
    return render(
        "summarizer_user",
        kernel=slow.kernel.name,
        digest=digest(slow.measurement),
        counters=_counters(MeasuredVersions(slow.measurement, fast.measurement)),
        change=change(before, after, LESSON_LINES),
        slow=_time(times[0]),
        fast=_time(times[1]),
    )


def _counters(versions: MeasuredVersions) -> str:
    moved = versions.moved()[:COUNTERS_SHOWN]
    if not moved:
        return "No counters of both versions are known.\n"
    return "".join(f"- {name}: {number(before)}, then {number(after)}\n" for name, before, after in moved)


def _known_from(suggestion: Suggestion) -> KernelMeasurement:
    """Build a measurement of the slow version from the suggestion itself."""
    dialect: Dialect = "nki" if suggestion.dialect == "nki" else "triton"
    return KernelMeasurement(
        suggestion.kernel, 1, dialect, suggestion.target, latency=suggestion.slow, bound=suggestion.bound
    )


def _time(latency: Latency) -> str:
    return number(Quantity(latency.us, latency.known, unit="us", low=latency.low_us, high=latency.high_us))
