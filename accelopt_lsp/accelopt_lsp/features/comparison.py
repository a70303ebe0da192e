"""Put two measurements of one kernel side by side: a table of what moved, and the page that compares two texts."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from accelopt_agent.model.prompt_templates import fenced
from accelopt_agent.search.versions import MeasuredVersions
from accelopt_lsp.features.wording import LatencyChange, escaped, percent, profiled_at, quantity
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import Known, Quantity
from accelopt_profiling.source_text import source_lines

#: So many counters that moved are listed.
COUNTERS = 16


def comparison(
    versions: MeasuredVersions, changed: LatencyChange | None, texts: tuple[str, str], than: str
) -> str:
    """Return the page that compares a kernel with the one of an earlier or other text, ``than`` in words.

    Both measurements must be there; ``texts`` are the whole files, the other one first.
    """
    slow, fast = versions.slow, versions.fast
    assert slow is not None
    assert fast is not None
    parts = [f"# {escaped(fast.name)}, compared with {escaped(than)}"]
    ratio = "the two times cannot be compared" if changed is None else changed.than(than)
    parts.append(f"On {escaped(fast.target)}: {escaped(ratio)}.")
    if slow.case != fast.case:
        inputs = escaped(profiled_at(slow)), escaped(profiled_at(fast))
        parts.append(f"They ran with different inputs: {inputs[0]} there, {inputs[1]} here.")
    parts.append(costs(versions, (slow.latency, fast.latency), (than, "now")))
    parts += [_correctness(than, slow), _correctness("now", fast)]
    old, new = map(source_lines, texts)
    lines = difflib.unified_diff(old, new, than, "now", lineterm="")
    parts += ["## The difference", fenced("\n".join(lines) or "none", "diff")]
    return "\n\n".join(part for part in parts if part) + "\n"


def _correctness(name: str, measured: KernelMeasurement) -> str:
    checked = measured.correctness
    if checked.status == "passed":
        return ""
    return (
        f"{escaped(name[:1].upper() + name[1:])}: result {checked.status}. {escaped(checked.detail)}".strip()
    )


def costs(
    versions: MeasuredVersions,
    times: tuple[Latency, Latency],
    heads: Sequence[str] = ("before", "with this version"),
    bound: str | None = None,
) -> str:
    """Return the table of both times and of the counters that moved, most first.

    ``bound`` is what limited the slow version, said where the memory does not hold the counters.
    """
    slow, fast = versions.slow, versions.fast
    ends = (Quantity(t.us, t.known, unit="us", low=t.low_us, high=t.high_us) for t in times)
    rows = [_row("time", *ends)]
    if slow is None or fast is None:
        limit = f" The slow version was limited by {escaped(bound)}." if bound else ""
        return f"{_table(heads, rows)}\n\nThe counters of both versions are not in the memory.{limit}"
    if slow.percent_of_peak is not None and fast.percent_of_peak is not None:
        how = _how(slow.latency.known, fast.latency.known)
        rows.append(
            f"| of peak | {percent(slow.percent_of_peak)} % | {percent(fast.percent_of_peak)} % | | {how} |"
        )
    moved = versions.moved()
    rows += [_row(name.replace("_", " "), before, after) for name, before, after in moved[:COUNTERS]]
    text = _table(heads, rows)
    if len(moved) > COUNTERS:
        text += f"\n\n{len(moved) - COUNTERS} more counters moved less."
    if same := versions.unmoved():
        text += f"\n\nThe same in both: {', '.join(escaped(name.replace('_', ' ')) for name in same)}."
    if slow.bound and fast.bound:
        still = "is still" if slow.bound == fast.bound else f"was limited by {escaped(slow.bound)} and is now"
        text += f"\n\nIt {still} limited by {escaped(fast.bound)}."
    return text


def _table(heads: Sequence[str], rows: list[str]) -> str:
    head = f"| what | {' | '.join(map(escaped, heads))} | change | how known |"
    return "\n".join([head, "|---|---:|---:|---:|---|", *rows])


def _row(name: str, before: Quantity, after: Quantity) -> str:
    changed = ""
    if before.value and after.value is not None:
        changed = f"{100 * (after.value - before.value) / before.value:+.0f} %"
    how = _how(before.known, after.known)
    return f"| {escaped(name)} | {quantity(before)} | {quantity(after)} | {changed} | {how} |"


def _how(before: Known, after: Known) -> str:
    return str(before) if before is after else f"{before}, then {after}"
