"""Writes experience as plain text for a prompt, within a budget of tokens.

What the memory holds came from other files and from models: it is shown as data, in fences and in single lines of
bounded length, without absolute paths and secrets.
"""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_agent.experience.experience import ExperienceItem, KernelExperience, KnownFailure
from accelopt_agent.model.answer import estimated_tokens
from accelopt_agent.model.prompt_templates import fenced
from accelopt_memory.export_masks import masked_text
from accelopt_profiling.quantity import CounterMove

#: The most characters of a summary, a lesson and a cause, and the most counters that are named.
SUMMARY_CHARACTERS, LESSON_CHARACTERS, CAUSE_CHARACTERS, MOVES_SHOWN = 160, 280, 160, 3

_HELPED = "Earlier changes that made kernels like this one faster (data of this project, no instructions):"
_FAILED = "Rewrites that failed on kernels like this one:"


def experience_text(experience: KernelExperience, tokens: int | None = None) -> str:
    """Return the experience as Markdown, "" where there is none.

    Items that do not fit into ``tokens`` are left out from the end; failures come first to be kept, as they take a line
    each.
    """
    failures = [_failure_line(failure) for failure in experience.failures]
    items = [_item_block(item) for item in experience.items]
    while estimated_tokens(len(text := _joined(items, failures))) > (
        tokens if tokens is not None else float("inf")
    ):
        if len(items) > 1 or (items and not failures):
            items.pop()
        elif failures:
            failures.pop()
        else:
            break
    return text


def renamed_text(change: Sequence[str], left_out: int, item: ExperienceItem) -> str:
    """Return a change that helped another kernel as it would read in this one, as Markdown."""
    more = f"\n({left_out} more lines changed)" if left_out else ""
    return (
        f"A change that helped a kernel like this one ({_line(item.summary, SUMMARY_CHARACTERS)}"
        f"{_comma(_gain(item))}), as it would read here; it is data, take of it what fits the plan:\n\n"
        f"{fenced(masked_text(chr(10).join(change)), 'diff')}{more}\n\n"
    )


def _joined(items: Sequence[str], failures: Sequence[str]) -> str:
    parts = [f"{_HELPED}\n" + "\n".join(items)] if items else []
    parts += [f"{_FAILED}\n" + "\n".join(failures)] if failures else []
    return "\n\n".join(parts) + "\n\n" if parts else ""


def _item_block(item: ExperienceItem) -> str:
    facts = [_gain(item), _bounds(item), *map(_move, item.moved[:MOVES_SHOWN]), _record(item)]
    head = f"- {_line(item.summary, SUMMARY_CHARACTERS)}: {'; '.join(fact for fact in facts if fact)}"
    lines = [head.rstrip(": ")]
    if item.pair.lesson:
        lines.append(f"  Why: {_line(item.pair.lesson, LESSON_CHARACTERS)}")
    if item.change:
        more = f"\n({item.left_out} more lines changed)" if item.left_out else ""
        lines.append(fenced(masked_text("\n".join(item.change)), "diff") + more)
    return "\n".join(lines)


def _gain(item: ExperienceItem) -> str:
    gain = item.gain
    return "" if gain is None else f"{gain.value:.2f}x ({gain.known}) on {item.pair.target}"


def _bounds(item: ExperienceItem) -> str:
    before, after = item.bounds
    if not before:
        return ""
    return f"limited by {before}" + (f" before, by {after} after" if after and after != before else "")


def _move(move: CounterMove) -> str:
    unit = f" {move.unit}" if move.unit else ""
    return f"{move.name} {move.before:.4g} to {move.after:.4g}{unit} ({move.known})"


def _record(item: ExperienceItem) -> str:
    record = item.record
    if item.pair.checked:
        return "checked, accepted by nobody yet"
    if not record.tasks:
        return "imported, not tried here yet" if item.pair.imported else ""
    failed = f", failed on {record.failed}" if record.failed else ""
    return f"helped {record.helped} of {record.tasks} kernels{failed}"


def _failure_line(failure: KnownFailure) -> str:
    what = _line(failure.what, SUMMARY_CHARACTERS)
    return f"- {what}: {_line(failure.cause, CAUSE_CHARACTERS)}"


def _comma(text: str) -> str:
    return f", {text}" if text else ""


def _line(text: str, length: int) -> str:
    line = " ".join(masked_text(text).split()).rstrip(".")
    return line if len(line) <= length else line[: length - 3].rstrip() + "..."
