"""Put numbers and results into words for titles, hints and tables; how a number is known is always part of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from accelopt_agent.speedup import Direction, direction, resolution
from accelopt_agent.speedup import speedup as ratio_of
from accelopt_agent.suggestions.suggestion import Speedup, Suggestion, VersionStep
from accelopt_lsp.state.state_store import Document
from accelopt_profiling.duration import (
    duration_text,
    interval,
    known_interval,
    rounded,
    unit_of,
)
from accelopt_profiling.measurement import Finding, KernelMeasurement, Latency, short_text, worst
from accelopt_profiling.quantity import Known, Quantity
from accelopt_profiling.targets.target import load_target, target_names

#: The heading of the last part of an explanation. What stands before it is enough for a message.
CHANGE_HEADING = "## The change"

#: How much of a result a title shows: the time, also what bounds it, or all that is known.
Detail = Literal["short", "normal", "full"]

#: The word in front of a time, by how it is known.
_PREFIX = {
    Known.MEASURED: "measured",
    Known.ESTIMATED: "est.",
    Known.EXECUTED: "executed",
    Known.COMPILED: "compiled",
}


_MARKUP = re.compile(r"([\\\[\]!<>|*~`]|\b_|_\b)")  # an underscore inside a word means nothing


def number(value: float) -> str:
    """Return a count in full, ``114,688``; anything else to three significant digits."""
    return f"{int(value):,}" if value == int(value) else rounded(value)


def duration(latency: Latency) -> str:
    """Return ``est. 22-190 us``, ``measured 3.2 us`` or ``not measured``: an estimate is its interval, and nothing
    else."""
    return "not measured" if latency.us is None else f"{_PREFIX[latency.known]} {bare_duration(latency)}"


def bare_duration(latency: Latency) -> str:
    """Return the time without how it is known: only for places that say that beside it."""
    if latency.us is None:
        return "not measured"
    low, high = latency.low_us, latency.high_us
    if latency.known is not Known.ESTIMATED or low is None or high is None:
        return duration_text(latency.us)
    size, unit = unit_of(latency.us)
    return f"{known_interval(low / size, high / size)} {unit}"


def duration_interval(latency: Latency) -> str:
    """Return an estimate with its interval, ``est. 890 us (812-1,010)`` or ``est. 2.47 ms (1.65-3.08)``, for
    comparing versions by one model; anything else as ``duration``."""
    low, high = latency.low_us, latency.high_us
    if latency.known is not Known.ESTIMATED or latency.us is None or low is None or high is None:
        return duration(latency)
    size, unit = unit_of(latency.us)
    middle, ends = rounded(latency.us / size), interval(low / size, high / size)
    return f"{_PREFIX[latency.known]} {middle} {unit}{f' ({ends})' if ends != middle else ''}"


def quantity(value: Quantity) -> str:
    """Return a quantity in a table cell, without how it is known: that has a column of its own.

    ``12.6 M sectors``, ``530-640 kB``, ``22-190 us``.
    """
    if value.value is None:
        return "-"
    low = high = value.value
    if value.known is Known.ESTIMATED and value.low is not None and value.high is not None:
        low, high = value.low, value.high
    scale, unit = _scaled_unit(value.value, _singular(value.unit) if low == high == 1 else value.unit)
    text = number(low / scale) if low == high else known_interval(low / scale, high / scale)
    return f"{text} {unit}".rstrip()


def _scaled_unit(size: float, unit: str) -> tuple[float, str]:
    """Return the factor and the name of the unit that fits ``size``: ``MB``, ``kB per partition``, ``M sectors``."""
    if unit == "us":
        return unit_of(size)
    if unit == "%":
        return 1.0, unit
    first, _, rest = unit.partition(" ")
    in_bytes = first in ("B", "bytes")
    least = 1e3 if in_bytes else 1e6
    scale, prefix = next(((s, p) for s, p in _PREFIXES if size >= s >= least), (1.0, ""))
    return scale, (f"{prefix}B {rest}" if in_bytes else f"{prefix} {unit}").strip()


#: Counts are written in full below a million, bytes below a thousand.
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def _singular(unit: str) -> str:
    """Return the unit of one: ``launch`` of ``launches``, ``program`` of ``programs``; ``per thread`` stays."""
    return re.sub(r"^(\w+ch)es\b|^(\w{3,})s\b", lambda plural: plural[1] or plural[2], unit)


def percent(value: float) -> str:
    """Return ``41``, ``2.9``; what would read as nothing is ``under 0.1``."""
    if 0 < value < 0.05:
        return "under 0.1"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def times(ratio: float) -> str:
    """Return a ratio of two times: ``1.33x``, ``2.6x``, ``24x``."""
    return f"{ratio:.{_decimals(ratio)}f}x"


def _decimals(ratio: float) -> int:
    return 2 if ratio < 1.995 else 1 if ratio < 9.95 else 0


def speedup(value: Speedup) -> str:
    """Return ``2.8x est. (2.2-4.6)``, ``1.33x est. (1.00-1.33), no modelled cost rises``, ``1.80x measured
    (1.79-1.82)``, or ``2.8x est. at larger batches (2.2-4.6)``.

    Where all scenarios of a model gain the same, no interval is shown: ``2.2x est.``. What an estimate gains may be
    next to nothing in one scenario; then it says that none is slower.
    """
    low, high = (f"{ratio:.{_speedup_decimals(value)}f}" for ratio in (value.low, value.high))
    text = short_speedup(value) + (f" ({low}-{high})" if low != high else "")
    facts = resolution()
    if value.known is not Known.ESTIMATED or value.low >= 1 + facts["estimated_relative"]:
        return text
    return f"{text}, no modelled cost rises{'' if value.low > 0.995 else ' by more than 1 %'}"


def short_speedup(value: Speedup) -> str:
    """Return a speedup without its interval, for a title: ``2.8x est.``, ``2.8x est. at larger batches``."""
    how = _PREFIX.get(value.known, str(value.known)) + (f" at {value.at}" if value.at else "")
    return f"{value.value:.{_speedup_decimals(value)}f}x {how}"


def _speedup_decimals(value: Speedup) -> int:
    return 2 if value.known is Known.MEASURED else _decimals(value.value)


def origin(suggestion: Suggestion) -> str:
    """Return who wrote a suggestion: ``rule hoist-load``, ``memory 3f2a``, ``written by the model NAME``, or by a
    person."""
    kind, _, name = suggestion.origin.partition(":")
    if kind == "person":
        return "written by a person"
    return f"written by the model {name}" if kind == "model" else f"{kind} {name}"


def step_gain(step: VersionStep, target: str) -> str:
    """Return what one step of a version gained and the time after it: ``1.40x est., est. 630 us (590-700)``."""
    way, ratio = direction(step.before, step.after, target), ratio_of(step.before, step.after, target)
    if way is None or ratio is None:
        return "not timed by itself"
    back = ratio_of(step.after, step.before, target)
    slower = f"{short_speedup(back)} slower" if back is not None else "slower"
    gain = {"faster": short_speedup(ratio), "slower": slower, "same": "no gain by itself"}[way]
    return f"{gain}, {duration_interval(step.after)}"


def version_name(suggestion: Suggestion) -> str:
    """Return what a view of a suggestion is called: ``silu: 1.80x est. (1.60-2.10), rule hoist-load``."""
    return f"{suggestion.kernel}: {speedup(suggestion.speedup)}, {origin(suggestion)}"


def headline(result: KernelMeasurement, run_findings: Iterable[Finding] = (), detail: Detail = "full") -> str:
    """Return ``est. 820-1,000 us on trn1 · VectorE bound · 41 % of peak``, or ``wrong result · not measured on trn1``;
    ``run_findings`` are those of the file's run.

    ``normal`` leaves out what waits for what and ends in ``41 %``, ``short`` is the time alone.
    """
    on = "" if detail == "short" else f" on {where(result)}"
    if result.latency.us is None:
        reason = stop_reason(result, run_findings)
        return f"{f'{reason} · ' if reason else ''}not measured{on}"
    parts = [f"{duration(result.latency)}{on}"]
    if result.bound and detail != "short":
        waits = f" ({result.waiting})" if result.waiting and detail == "full" else ""
        parts.append(f"{result.bound} bound{waits}")
    if result.percent_of_peak is not None and detail != "short":
        parts.append(f"{percent(result.percent_of_peak)} %{' of peak' if detail == 'full' else ''}")
    return " · ".join(parts)


def where(result: KernelMeasurement) -> str:
    """Return the target, "unvalidated" where it is estimated by a model that no time of a device was compared with."""
    if result.latency.known is not Known.ESTIMATED or result.target not in target_names():
        return result.target
    return result.target if load_target(result.target).is_validated else f"{result.target}, unvalidated"


def profiled_at(result: KernelMeasurement) -> str:
    """Return what a cost is stated for: ``x 4096x1024 fp16, BLOCK=128, num_warps=4``."""
    return ", ".join(part for part in (result.case, result.configuration) if part)


def escaped(text: str) -> str:
    """Return ``text`` as Markdown that shows it as it is: a model's words or a file's name make no link, picture or
    HTML."""
    return _MARKUP.sub(r"\\\1", text)


@dataclass(frozen=True)
class LatencyChange:
    """``ratio`` (1..) is the longer time over the shorter one."""

    direction: Direction
    ratio: float = 1.0

    def __str__(self) -> str:
        return self.than("last save")

    def than(self, other: str) -> str:
        """Return the change against another version, ``other`` in words."""
        if self.direction == "same":
            return f"same as {other}" if times(self.ratio) == times(1.0) else f"within noise of {other}"
        return f"{times(self.ratio)} {self.direction} than {other}"


def change(before: KernelMeasurement | None, now: KernelMeasurement) -> LatencyChange | None:
    """Return how ``now`` compares with ``before`` by the rule that offers follow too; None where they cannot
    be compared.

    Only like with like: the same target and host and the same tensors, known in the same way.
    """
    if before is None or (before.target, before.host, before.case) != (now.target, now.host, now.case):
        return None
    return latency_change(before.latency, now.latency, now.target)


def latency_change(old: Latency, new: Latency, target: str) -> LatencyChange | None:
    """Return how two times for the same inputs on one target compare; None where they are not known in one way."""
    if old.known is not new.known or not old.us or not new.us:
        return None
    way = direction(old, new, target)
    return None if way is None else LatencyChange(way, max(old.us, new.us) / min(old.us, new.us))


#: The words for a result that disagrees with the reference.
WRONG = "wrong result"


def syntax_fault(state: Document) -> str:
    """Return ``does not parse, line 12`` where the text of a file does not; empty otherwise."""
    return next((short_text(f) for f in state.findings if f.code == "syntax-error"), "")


def stop_finding(result: KernelMeasurement, run_findings: Iterable[Finding] = ()) -> Finding | None:
    """Return what keeps a kernel from a time, of its own findings first, then of those of its file's run."""
    if result.latency.us is not None:
        return None
    fault = result.fault
    findings = [*([] if fault is None else [fault]), *result.findings, *run_findings]
    return worst(f for f in findings if short_text(f))


def stop_reason(result: KernelMeasurement, run_findings: Iterable[Finding] = ()) -> str:
    """Return ``raises AttributeError, line 21``, ``out of bounds, line 12`` or ``wrong result``: why a kernel has no
    time. Empty where it has one."""
    reason = stop_finding(result, run_findings)
    return "" if reason is None else short_text(reason)
