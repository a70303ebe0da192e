"""Put a suggestion into the few lines that stand at the head of its diff."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.features.wording import duration_interval, escaped, origin, speedup
from accelopt_profiling.gate.scope import scope


def review(suggestion: Suggestion) -> str:
    """Return, as Markdown: both times with their intervals, the steps, and what the gate has checked."""
    return "\n\n".join(_parts(suggestion))


def _parts(suggestion: Suggestion) -> Iterator[str]:
    slow, fast = duration_interval(suggestion.slow), duration_interval(suggestion.fast)
    yield f"**{slow} → {fast}** on {escaped(suggestion.target)}: {speedup(suggestion.speedup)}"
    if suggestion.bound and suggestion.fast_bound and suggestion.bound != suggestion.fast_bound:
        yield f"Limited by {escaped(suggestion.bound)} before, by {escaped(suggestion.fast_bound)} then."
    steps = list(dict.fromkeys(suggestion.steps or (suggestion.origin,)))
    if len(steps) > 1:
        yield "\n".join(f"{n}. {escaped(step.replace(':', ' '))}" for n, step in enumerate(steps, 1))
    else:
        yield f"{escaped(suggestion.summary)} ({escaped(origin(suggestion))})"
    if checked := scope(suggestion.gate, suggestion.dialect):
        yield "\n".join(f"- {escaped(sentence)}" for sentence in checked)
