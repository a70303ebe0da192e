"""From what the steps found to the decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.gate.draw import DrawnCase
from accelopt_profiling.gate.judge import JudgedCase
from accelopt_profiling.gate.reference import ReferenceResult
from accelopt_profiling.gate.run import RunCase
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import to_plain

#: Codes of a step's error and the reason they become when it was the candidate's step.
_CANDIDATE_CODES = {
    "user-error": "kernel-raised",
    "crashed": "kernel-crashed",
    "killed": "kernel-crashed",
    "exited": "kernel-exited",
    "memory": "out-of-memory",
    "problem-invalid": "no-entry",
    "problem-empty": "no-output",
}


@dataclass
class Evidence:
    """What the four steps returned. ``running`` is the case the candidate was last seen in; ``complete`` tells that
    the judge, the last, has answered.
    """

    reasons: list[Reason] = field(default_factory=list)
    drawn: list[DrawnCase] = field(default_factory=list)
    ran: list[RunCase] = field(default_factory=list)
    answered: ReferenceResult | None = None
    judged: list[JudgedCase] = field(default_factory=list)
    running: Any = None
    complete: bool = False


def failed_step(step: str, error: StepError, case: str) -> Reason:
    """The reason for a step that ended without an answer: the candidate's fault, the problem's, or the gate's."""
    place = f" ({error.file}:{error.line})" if error.file and error.line else ""
    if step == "gate.run":
        code = _CANDIDATE_CODES.get(error.code, error.code)
        when = f" on the case {case!r}" if case else ""
        return Reason(code, f"The candidate failed{when}: {error.message}{place}")
    if error.code == "tampered":
        return Reason("tampered", error.message)
    if step in ("gate.draw", "gate.reference"):
        code = error.code if error.code.startswith(("problem-", "missing-")) else f"problem-{error.code}"
        return Reason(code, f"The problem cannot be used: {error.message}{place}")
    return Reason("gate-failed", f"The gate could not finish ({step}): {error.message}")


def decide(evidence: Evidence, kernel: str | None) -> tuple[bool, list[Reason], list[dict[str, Any]]]:
    """Accept only when every drawn case was run, answered and judged, and nothing speaks against it.

    ``kernel`` is the name that has to be among the launched kernels; None where none is (a device function).
    """
    refusals = list(evidence.reasons)
    notes: list[Reason] = []
    checks: list[dict[str, Any]] = []
    judged = {case.index: case for case in evidence.judged}
    ran = {case.index: case for case in evidence.ran}
    answered = {case.index: case for case in evidence.answered.cases} if evidence.answered else {}
    compared = 0
    for drawn in evidence.drawn:
        check: dict[str, Any] = {
            "case": drawn.name,
            "distribution": drawn.distribution,
            "shapes": drawn.shapes,
        }
        checks.append(check)
        if drawn.left_out:
            check["outcome"] = f"left out: {drawn.left_out}"
            if "large" in drawn.left_out:
                notes.append(
                    Reason("case-left-out", f"The case {drawn.name!r} was not run: {drawn.left_out}.")
                )
            continue
        notes += [Reason("fixed-inputs", f"In the case {drawn.name!r} {note}.") for note in drawn.notes[:1]]
        if not evidence.complete:
            check["outcome"] = "not judged"
            continue
        if drawn.index not in judged or drawn.index not in ran or drawn.index not in answered:
            check["outcome"] = "missing"
            refusals.append(Reason("incomplete", f"The case {drawn.name!r} was drawn but not answered."))
            continue
        found = [*_conduct(ran[drawn.index], kernel), *judged[drawn.index].reasons]
        if drawn.twice and judged[drawn.index].bitwise_repeatable is None and not judged[drawn.index].reasons:
            found.append(Reason("incomplete", "The second run on the same inputs is missing."))
        if answered[drawn.index].digests != drawn.digests:
            found.append(Reason("tampered", "The saved inputs changed while the candidate ran."))
        if answered[drawn.index].layout_fault:
            fault = answered[drawn.index].layout_fault
            found.insert(0, Reason("wrong-shape", f"The outputs do not fit the reference's layout: {fault}."))
        refusals += [Reason(r.code, f"In the case {drawn.name!r}: {r.message}") for r in found]
        notes += judged[drawn.index].notes
        if answered[drawn.index].note and not compared:
            notes.append(Reason("not-float64", f"The expected values are {answered[drawn.index].note}."))
        compared += not judged[drawn.index].skipped and judged[drawn.index].checked > 0
        if judged[drawn.index].checked < 1 and not judged[drawn.index].skipped:
            share = 100 * judged[drawn.index].checked
            said = f"In the case {drawn.name!r} {share:.3g} % of the output was checked."
            notes.append(Reason("partly-checked", said))
        check.update(
            _described(ran[drawn.index], answered[drawn.index].precision, judged[drawn.index], found)
        )
    if evidence.complete and not compared:
        refusals.append(
            Reason("nothing-compared", "No case could be compared, so nothing is known of the candidate.")
        )
    if not evidence.complete and not refusals:
        refusals.append(Reason("incomplete", "The host ended the check without an answer."))
    accepted = evidence.complete and not refusals
    return accepted, _unique(refusals or notes), checks


def _conduct(ran: RunCase, kernel: str | None) -> list[Reason]:
    found: list[Reason] = []
    if kernel and ran.launched is not None and kernel not in ran.launched:
        others = f" (only {', '.join(ran.launched)})" if ran.launched else ""
        found.append(Reason("never-launched", f"The kernel {kernel} was not launched{others}."))
    if ran.inputs_changed:
        listed = ", ".join(str(n) for n in ran.inputs_changed)
        found.append(Reason("inputs-changed", f"It wrote to its inputs (argument {listed})."))
    if ran.aliases:
        found.append(Reason("aliases-input", f"It returned memory of an input: {'; '.join(ran.aliases)}."))
    if ran.reused:
        found.append(
            Reason(
                "output-reused", "Two calls returned the same memory, so a result is lost by the next call."
            )
        )
    return found


def _described(ran: RunCase, precision: str, judged: JudgedCase, found: list[Reason]) -> dict[str, Any]:
    outcome = "skipped: " + judged.skipped if judged.skipped else ("failed" if found else "passed")
    return {
        "outcome": outcome,
        "reasons": [r.code for r in found],
        "reference_precision": precision,
        "seconds": round(ran.seconds, 6),
        "launched": ran.launched,
        "complete": ran.complete,
        "checked": judged.checked,
        "bitwise_repeatable": judged.bitwise_repeatable,
        "outputs": to_plain(judged.outputs),
    }


def _unique(reasons: list[Reason]) -> list[Reason]:
    """Without repetitions; the first of each code first, so that the head of the list tells all kinds there are."""
    unique = list(dict.fromkeys(reasons))
    first = {r.code: r for r in reversed(unique)}
    heads = [r for r in unique if first[r.code] is r]
    return [*heads, *(r for r in unique if first[r.code] is not r)]
