"""Write the Markdown page about why a suggestion is faster: the words first, then the numbers that they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from accelopt_agent.model.prompt_templates import fenced
from accelopt_agent.rules.catalogue import Rule, rules
from accelopt_agent.search.versions import MeasuredVersions
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.features.comparison import costs
from accelopt_lsp.features.wording import (
    CHANGE_HEADING,
    duration_interval,
    escaped,
    origin,
    speedup,
    step_gain,
)
from accelopt_profiling.gate.scope import scope
from accelopt_profiling.quantity import Known

#: So many lines of one remark, and so much of a model's answer is shown.
LINES, CHARACTERS = 6, 4000


@dataclass(frozen=True)
class ModelExplanation:
    """What the summarizer ``model`` wrote."""

    model: str
    text: str


def explanation(
    suggestion: Suggestion, versions: MeasuredVersions, model_words: ModelExplanation | None, remark: str
) -> str:
    """Return the page. ``remark`` is a line about the model: why it was not asked, what went wrong, what it
    cost."""
    return "\n\n".join(part for part in _parts(suggestion, versions, model_words, remark) if part) + "\n"


def _parts(
    suggestion: Suggestion, versions: MeasuredVersions, model_words: ModelExplanation | None, remark: str
) -> Iterator[str]:
    faster = speedup(suggestion.speedup)
    yield f"# {escaped(suggestion.kernel)}: {faster} faster on {escaped(suggestion.target)}"
    times = (
        f"{duration_interval(suggestion.slow)} before, {duration_interval(suggestion.fast)} with this version"
    )
    yield f"{times} ({escaped(origin(suggestion))})."
    if model_words is not None:
        yield f"**Written by the model {escaped(model_words.model)}**, which may be wrong; every number below is ours:"
        yield "\n".join(f"> {line}".rstrip() for line in escaped(model_words.text[:CHARACTERS]).splitlines())
    if remark:
        yield f"*{escaped(remark)}*"
    yield "## What was changed"
    yield _steps(suggestion, versions)
    yield "## What it costs"
    yield costs(versions, (suggestion.slow, suggestion.fast), bound=suggestion.bound)
    yield "## What was checked"
    yield _check(suggestion)
    yield CHANGE_HEADING
    yield fenced(suggestion.diff, "diff")


def _steps(suggestion: Suggestion, versions: MeasuredVersions) -> str:
    by_name = {rule.name: rule for rule in rules()}
    lines = []
    for step in dict.fromkeys(suggestion.steps or (suggestion.origin,)):
        kind, _, name = step.partition(":")
        rule = by_name.get(name) if kind == "rule" else None
        if rule is not None:
            lines.append(
                f"- **{rule.title}** (rule `{name}`).{_meant(rule, versions)} It applies where: {rule.applies}"
            )
        elif kind == "model":
            lines.append(f"- A rewrite written by the model {escaped(name)}.")
        elif kind == "memory":
            lines.append(f"- A rewrite accepted before, from the memory (`{escaped(name)}`).")
        else:
            lines.append(f"- {escaped(step)}")
    gains = [
        f"| {number} | {escaped(step.summary)} | {duration_interval(step.before)} | {duration_interval(step.after)} "
        f"| {step_gain(step, suggestion.target).partition(', ')[0]} |"
        for number, step in enumerate(suggestion.way, 1)
    ]
    table = ["| step | does | time before | time after | gain |", "|---|---|---|---|---|", *gains]
    parts = [escaped(suggestion.summary), "\n".join(lines), *(["\n".join(table)] if len(gains) > 1 else [])]
    return "\n\n".join(parts)


def _meant(rule: Rule, versions: MeasuredVersions) -> str:
    """Return what the rule is meant to move, and whether that moved."""
    moved = {name: (before, after) for name, before, after in versions.moved()}
    parts = []
    for name, way in rule.moves.items():
        if name in moved:
            before, after = (q.value or 0.0 for q in moved[name])
            as_meant = after < before if way == "down" else after > before
            parts.append(f"{name} {way} ({'it went' if as_meant else 'it did NOT go'} {way})")
        elif name in versions.unmoved():
            parts.append(f"{name} {way} (it stayed the same)")
    return f" It is meant to bring {', '.join(parts)}." if parts else ""


def _check(suggestion: Suggestion) -> str:
    sentences = scope(suggestion.gate, suggestion.dialect)
    parts = ["The gate accepted it." + ("" if sentences else " What it covered is not recorded.")]
    if sentences:
        parts.append("\n".join(f"- {escaped(sentence)}" for sentence in sentences))
    remarks: list[str] = []
    if receipt := suggestion.gate.receipt:
        remarks.append(f"`accelopt replay {escaped(receipt)}` checks it again.")
    if suggestion.speedup.known is not Known.MEASURED:
        remarks.append(f"The times are {suggestion.speedup.known}: no device has timed either version.")
    if suggestion.speedup.at:
        remarks.append(
            "In the profiled case starting the kernel takes most of the time, which no rewrite changes; the speedup is"
            f" that of many such launches in one: at {suggestion.speedup.at}."
        )
    if suggestion.launches:
        remarks.append(f"By the estimate none of the {suggestion.launches} launches of the run is slower.")
    parts += [" ".join(remarks)] if remarks else []
    if notes := _remarks(suggestion):
        parts.append("The gate also says:\n\n" + "\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts)


def _remarks(suggestion: Suggestion) -> list[str]:
    """Return what the gate has to say of what it accepted, each kind of remark once: the same words of many
    lines, and kernels that the problem does not launch, are told together."""
    lines: dict[str, list[int]] = {}
    unlaunched: list[str] = []
    for reason in suggestion.gate.reasons:
        if reason.code == "not-run" and reason.kernel:
            unlaunched.append(reason.kernel)
        else:
            words = reason.message.removesuffix(f" (line {reason.line})")
            lines.setdefault(words, []).extend([reason.line] if reason.line else [])
    remarks = [_with_lines(escaped(words), sorted(numbers)) for words, numbers in lines.items()]
    if unlaunched:
        remarks.append(f"Not launched by the problem, so not checked: {escaped(', '.join(unlaunched))}.")
    return remarks


def _with_lines(words: str, numbers: list[int]) -> str:
    if not numbers:
        return words
    places = ", ".join(map(str, numbers[:LINES]))
    more = f" and {len(numbers) - LINES} more" if len(numbers) > LINES else ""
    return f"{words} (line{'' if len(numbers) == 1 else 's'} {places}{more})"
