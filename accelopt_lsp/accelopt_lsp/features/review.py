"""Put a suggestion into the few lines that stand at the head of its diff."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.suggestions.suggestion import Suggestion, VersionStep
from accelopt_lsp.features.wording import duration_interval, escaped, origin, speedup, step_gain
from accelopt_profiling.gate.scope import scope


def review(suggestion: Suggestion) -> str:
    """Return, as Markdown: both times with their intervals, the steps, and what the gate has checked."""
    return "\n\n".join(_parts(suggestion))


def _parts(suggestion: Suggestion) -> Iterator[str]:
    slow, fast = duration_interval(suggestion.slow), duration_interval(suggestion.fast)
    yield f"**{slow} → {fast}** on {escaped(suggestion.target)}: {speedup(suggestion.speedup)}"
    if suggestion.bound and suggestion.fast_bound and suggestion.bound != suggestion.fast_bound:
        yield f"Limited by {escaped(suggestion.bound)} before, by {escaped(suggestion.fast_bound)} then."
    if len(suggestion.way) > 1:
        rows = (f"{_row(step)}: {step_gain(step, suggestion.target)}" for step in suggestion.way)
        yield "\n".join(f"{number}. {row}" for number, row in enumerate(rows, 1))
    elif not suggestion.way and len(steps := list(dict.fromkeys(suggestion.steps))) > 1:
        yield "\n".join(f"{n}. {escaped(step.replace(':', ' '))}" for n, step in enumerate(steps, 1))
    else:
        yield f"{escaped(suggestion.summary)} ({escaped(origin(suggestion))})"
    if checked := scope(suggestion.gate, suggestion.dialect):
        yield "\n".join(f"- {escaped(sentence)}" for sentence in checked)


def _row(step: VersionStep) -> str:
    """Return what a step does and who made it, as Markdown."""
    makers = ", ".join(dict.fromkeys(origin.replace(":", " ") for origin in step.origins))
    return escaped(f"{step.summary.rstrip('.')} ({makers})")
