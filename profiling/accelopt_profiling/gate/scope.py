"""Say what a check covered: inputs, sizes, the share of the output, races, and what it did not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.quantity import Known

#: So many sizes are listed.
SIZES = 4
#: What was looked for beside the values, by dialect.
_ORDER = {
    "triton": "Looked for programs and lanes that read or overwrite what others write: none.",
    "nki": "Loops that promise to take any order ran in one that was drawn.",
}
#: How it is known that the target can launch it.
_LAUNCHABLE = {
    Known.COMPILED: "What it launches at the problem's own sizes compiles for the target and fits it.",
    Known.EXECUTED: "What it launches at the problem's own sizes fits the target in emulation; no compiler ran.",
}


def scope(verdict: Verdict, dialect: str) -> list[str]:
    """Return what the checks of ``verdict`` covered, one sentence each. Empty where none is recorded."""
    checks = [c for c in verdict.checks if c.get("outcome") == "passed"]
    if not checks:
        return []
    kinds = dict.fromkeys(str(c.get("distribution")) for c in checks)
    sizes = dict.fromkeys(size for c in checks if (size := _size(c.get("shapes"))))
    listed = "; ".join(list(sizes)[:SIZES]) + ("; ..." if len(sizes) > SIZES else "")
    sentences = [
        f"{_count(len(checks), 'draw')} of inputs, of {_count(len(kinds), 'kind')} ({', '.join(kinds)}), "
        "agree with the reference.",
        f"Checked at {_count(len(sizes), 'size')}: {listed}.",
        _compared(checks),
    ]
    if {c.get("bitwise_repeatable") for c in checks} - {None} == {True}:  # None where it ran once
        sentences.append("A second run on the same data gave the same bits.")
    sentences += [_ORDER[dialect]] if dialect in _ORDER else []
    skipped = [c for c in verdict.checks if c.get("outcome") in ("left out", "skipped")]
    if skipped:
        reasons = dict.fromkeys(str(c.get("why")) for c in skipped)
        sentences.append(f"Not checked: {_count(len(skipped), 'draw')} ({'; '.join(reasons)}).")
    if verdict.launchable.status == "yes":
        sentences.append(_LAUNCHABLE[verdict.launchable.known])
    if not any(reason.code == "run-on-device" for reason in verdict.reasons):
        sentences.append("Not run on a device.")
    return sentences


def scope_line(verdict: Verdict) -> str:
    """Return what the checks of ``verdict`` covered, in one line. Empty where none is recorded."""
    checks = [c for c in verdict.checks if c.get("outcome") == "passed"]
    sizes = {_size(c.get("shapes")) for c in checks}
    fewest = _fewest(checks)
    part = "all of the output" if fewest is None else f"{fewest} elements or more"
    words = f"{_count(len(checks), 'draw')} of inputs at {_count(len(sizes), 'size')}, {part}"
    return words if checks else ""


def _compared(checks: Sequence[Mapping[str, Any]]) -> str:
    fewest = _fewest(checks)
    if fewest is None:
        return "Every element of the output was compared in each."
    partly = sum(_share(c) < 1 for c in checks)
    return (
        f"In {partly} of them not every element of the output was compared, at the fewest {fewest}: those of programs "
        "drawn from all parts of the grid."
    )


def _share(check: Mapping[str, Any]) -> float:
    return float(check.get("checked") or 0.0)


def _fewest(checks: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the fewest elements that a draw compared, "512 of 4,096". None where each compared all."""
    least = min(checks, key=_share, default=None)
    if least is None or _share(least) == 1:
        return None
    return f"{least.get('compared', 0):,} of {least.get('of', 0):,}"


def _size(shapes: object) -> str:
    if not isinstance(shapes, Sequence):
        return ""
    return ", ".join("x".join(map(str, shape)) for shape in shapes if shape)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
