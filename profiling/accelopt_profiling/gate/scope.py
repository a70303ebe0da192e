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
    "triton": "Looked for programs and lanes that read what others write: none.",
    "nki": "Loops that promise to take any order ran in one that was drawn.",
}
#: How it is known that the target can launch it.
_LAUNCHABLE = {
    Known.COMPILED: "What it launches at the problem's own sizes compiles for the target and fits it.",
    Known.EXECUTED: "What it launches at the problem's own sizes fits the target in emulation; no compiler ran.",
}


def scope(verdict: Verdict, dialect: str) -> list[str]:
    """Return what the checks of ``verdict`` covered, one sentence each; empty where none is recorded."""
    passed = [c for c in verdict.checks if c.get("outcome") == "passed"]
    if not passed:
        return []
    kinds = dict.fromkeys(str(c.get("distribution")) for c in passed)
    sizes = dict.fromkeys(size for c in passed if (size := _size(c.get("shapes"))))
    listed = "; ".join(list(sizes)[:SIZES]) + ("; ..." if len(sizes) > SIZES else "")
    sentences = [
        f"{_count(len(passed), 'draw')} of inputs, of {_count(len(kinds), 'kind')} ({', '.join(kinds)}), "
        "agree with the reference.",
        f"Checked at {_count(len(sizes), 'size')}: {listed}.",
        _compared(passed),
    ]
    if all(c.get("bitwise_repeatable") for c in passed if c.get("bitwise_repeatable") is not None):
        sentences.append("A second run on the same data gave the same bits.")
    sentences += [_ORDER[dialect]] if dialect in _ORDER else []
    skipped = [c for c in verdict.checks if str(c.get("outcome", "")).startswith(("left out", "skipped"))]
    if skipped:
        reasons = dict.fromkeys(str(c["outcome"]).partition(": ")[2] for c in skipped)
        sentences.append(f"Not checked: {_count(len(skipped), 'draw')} ({'; '.join(reasons)}).")
    if verdict.launchable.status == "yes":
        sentences.append(_LAUNCHABLE[verdict.launchable.known])
    if not any(reason.code == "run-on-device" for reason in verdict.reasons):
        sentences.append("Not run on a device.")
    return sentences


def scope_line(verdict: Verdict) -> str:
    """Return what the checks of ``verdict`` covered, in one line; empty where none is recorded."""
    passed = [c for c in verdict.checks if c.get("outcome") == "passed"]
    sizes = {_size(c.get("shapes")) for c in passed}
    share = min((float(c.get("checked") or 0.0) for c in passed), default=0.0)
    part = "all" if share == 1 else f"{100 * share:.3g} % or more"
    words = f"{_count(len(passed), 'draw')} of inputs at {_count(len(sizes), 'size')}, {part} of the output"
    return words if passed else ""


def _compared(passed: Sequence[Mapping[str, Any]]) -> str:
    shares = [float(c.get("checked") or 0.0) for c in passed]
    partly = [share for share in shares if share < 1]
    if not partly:
        return "Every element of the output was compared in each."
    span = " to ".join(dict.fromkeys(f"{100 * share:.3g}" for share in (min(partly), max(partly))))
    return (
        f"{span} % of the output's elements were compared in {len(partly)} of them, in the others every one."
    )


def _size(shapes: object) -> str:
    if not isinstance(shapes, Sequence):
        return ""
    return ", ".join("x".join(map(str, shape)) for shape in shapes if shape)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
