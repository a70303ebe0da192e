"""Write the Markdown pages about remembered changes, each with its difference and what it did elsewhere, and forget
one: what the editor shows of the memory, called on the memory's own thread.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from accelopt_agent.experience.experience import TrackRecord
from accelopt_agent.experience.standing import PairStanding, standings_for_kernel, standings_with_words
from accelopt_agent.model.prompt_templates import fenced
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.wording import duration_interval, escaped, times
from accelopt_lsp.service.protocol import FileRequest
from accelopt_memory.memory import Memory
from accelopt_profiling.source_text import source_lines

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
        f"| `{pair.id}` | {_line(pair.summary)} | {_line(pair.kernel)} | {gain(one)} | {alike} |"
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
    yield tries(record)
    if pair.slow.us is not None and pair.fast.us is not None:
        yield f"{duration_interval(pair.slow)} before, {duration_interval(pair.fast)} after, on {_line(pair.target)}."
    if pair.bound:
        yield f"What limited the kernel: {_line(', then '.join(filter(None, (pair.bound, pair.fast_bound))))}."
    if pair.example:
        yield "It is shown to a model and not applied: its edit did not fit its own kernel, or stopped helping."
    origin = escaped(", then ".join(pair.steps or (pair.origin,)))
    if pair.checked:
        yield f"Made by {origin}; checked, accepted by nobody."
    elif pair.imported:
        yield f"Made by {origin}; imported: nobody here has accepted it."
    else:
        yield f"Made by {origin}; accepted {_line(pair.created[:16].replace('T', ' '))} (UTC)."
    if pair.lesson:
        yield f"Why it helped, as the model said: {_line(pair.lesson)}"


def tries(record: TrackRecord) -> str:
    """Return what a change did on other kernels, as a sentence."""
    if not record.tasks:
        return "It was not tried on other kernels yet."
    failed = f", failed or was undone on {record.failed}" if record.failed else ""
    tasks = "1 kernel" if record.tasks == 1 else f"{record.tasks} kernels"
    return f"It was tried on {tasks}, helped on {record.helped}{failed}."


def gain(one: PairStanding) -> str:
    return "not known" if one.pair.speedup is None else f"{times(one.pair.speedup)} {one.pair.fast.known}"


def _difference(one: PairStanding) -> str:
    slow, fast = source_lines(one.pair.slow_text), source_lines(one.pair.fast_text)
    lines = list(difflib.unified_diff(slow, fast, "before", "after", lineterm=""))
    left_out = len(lines) - LINES
    return "\n".join(lines[:LINES]) + (f"\n({left_out} more lines)" if left_out > 0 else "")


def _line(text: str) -> str:
    return escaped(" ".join(text.split()))


def kernel_page(file: FileRequest, kernel: str, bound: str | None, memory: Memory) -> str:
    """Return the page about the pairs that a search would try on a kernel. Raises UserError: it is not there."""
    dialect = next((k.dialect for k in file.source.kernels if k.name == kernel), None)
    if dialect is None:
        raise UserError(f"The file has no kernel {kernel}.")
    target = file.targets[dialect]
    return memory_page(
        kernel, standings_for_kernel(memory, file.text, kernel=kernel, bound=bound, target=target)
    )


def words_page(words: str, memory: Memory) -> str:
    """Return the page about the pairs that hold every one of the words."""
    return memory_page(f'"{words}"', standings_with_words(memory, words))


def forget_pair(pair: str, memory: Memory) -> str:
    """Delete the pair whose id begins so, and return that in words. Raises UserError: there is none, or several."""
    ids = [full for kind, full in memory.entries(pair) if kind == "pair"]
    if len(ids) != 1:
        many = f"could mean {', '.join(ids[:5])}" if ids else "is no pair of the memory"
        raise UserError(f"{pair} {many}; nothing was forgotten.")
    memory.forget(ids[0])
    return f"Forgot the pair {ids[0]}."
