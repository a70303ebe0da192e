"""Write the Markdown page about remembered changes: each with its difference, and what it did elsewhere."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from accelopt_agent.experience.standing import PairStanding
from accelopt_agent.model.prompt_templates import fenced
from accelopt_lsp.features.wording import duration, escaped, times

#: The most lines of a difference that are shown.
LINES = 80


def memory_page(about: str, standings: Sequence[PairStanding]) -> str:
    """Return the page; ``about`` says what was asked for, such as ``silu`` or ``the words "split k"``."""
    title = f"# Remembered changes: {escaped(about)}"
    if not standings:
        return f"{title}\n\nThere is none for {escaped(about)} in the memory.\n"
    rows = ["| pair | change | kernel | gain | alike | expected |", "|---|---|---|---:|---:|---:|"]
    rows += [_row(one) for one in standings]
    how = (
        "To forget one for good: the command *Forget a remembered change* with the id of the pair, or "
        "`accelopt memory forget ID`."
    )
    return "\n\n".join([title, "\n".join(rows), how, *(_details(one) for one in standings)]) + "\n"


def _row(one: PairStanding) -> str:
    pair = one.pair
    alike = "" if one.similarity is None else f"{100 * one.similarity:.0f} %"
    return (
        f"| `{pair.id}` | {_line(pair.summary)} | {_line(pair.kernel)} | {_gain(one)} | {alike} |"
        f" {one.expected:.2f}x time |"
    )


def _details(one: PairStanding) -> str:
    head = f"## `{one.pair.id}`: {_line(one.pair.summary)}"
    facts = "\n".join(f"- {fact}" for fact in _facts(one))
    return f"{head}\n\n{facts}\n\n{fenced(_difference(one), 'diff')}"


def _facts(one: PairStanding) -> Iterator[str]:
    """Yield why the change is tried, or why it is not."""
    pair, record = one.pair, one.record
    if one.similarity is not None:
        yield f"Its slow side is {100 * one.similarity:.0f} % like this kernel."
    if record.tasks:
        failed = f", failed or was undone on {record.failed}" if record.failed else ""
        tasks = "1 kernel" if record.tasks == 1 else f"{record.tasks} kernels"
        yield f"It was tried on {tasks}, helped on {record.helped}{failed}."
    else:
        yield "It was not tried on other kernels yet."
    if pair.slow.us is not None and pair.fast.us is not None:
        yield f"{duration(pair.slow)} before, {duration(pair.fast)} after, on {_line(pair.target)}."
    if pair.bound:
        yield f"What limited the kernel: {_line(', then '.join(filter(None, (pair.bound, pair.fast_bound))))}."
    if pair.example:
        yield "It is shown to a model and not applied: its edit did not fit its own kernel, or stopped helping."
    origin = escaped(", then ".join(pair.steps or (pair.origin,)))
    if pair.proved:
        yield f"Made by {origin}; proved right, accepted by nobody."
    elif pair.imported:
        yield f"Made by {origin}; imported: nobody here has accepted it."
    else:
        yield f"Made by {origin}; accepted {_line(pair.created[:16].replace('T', ' '))} (UTC)."
    if pair.lesson:
        yield f"Why it helped, as the model said: {_line(pair.lesson)}"


def _gain(one: PairStanding) -> str:
    return "not known" if one.pair.speedup is None else f"{times(one.pair.speedup)} {one.pair.fast.known}"


def _difference(one: PairStanding) -> str:
    slow, fast = one.pair.slow_text.splitlines(), one.pair.fast_text.splitlines()
    lines = list(difflib.unified_diff(slow, fast, "before", "after", lineterm=""))
    left_out = len(lines) - LINES
    return "\n".join(lines[:LINES]) + (f"\n({left_out} more lines)" if left_out > 0 else "")


def _line(text: str) -> str:
    return escaped(" ".join(text.split()))
