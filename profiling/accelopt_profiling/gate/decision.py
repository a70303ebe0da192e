"""Decide from the evidence: accept the candidate, or refuse it with reasons."""

from __future__ import annotations

import math
from typing import Any

from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
from accelopt_profiling.gate.step_schemas import (
    DrawnCase,
    JudgedCase,
    RunCase,
)
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.gate.violations import conduct, conduct_of_run, full_precision
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


def is_problem_fault(step: str, error: StepError) -> bool:
    """Return True for the failure of a step that runs the problem's code alone, and none of the candidate's."""
    return step in ("gate.draw", "gate.reference", "gate.original") and error.code != "tampered"


def failed_step(step: str, error: StepError, case: str) -> Reason:
    """The reason for a step that ended without an answer: the candidate's fault, the problem's, or the gate's."""
    place = f" ({error.file}:{error.line})" if error.file and error.line else ""
    if step == "gate.run":
        code = _CANDIDATE_CODES.get(error.code, error.code)
        when = f" on the case {case!r}" if case else ""
        return Reason(code, f"The candidate failed{when}: {error.message}{place}")
    if error.code == "tampered":
        return Reason("tampered", error.message)
    if is_problem_fault(step, error):
        code = error.code if error.code.startswith(("problem-", "missing-")) else f"problem-{error.code}"
        return Reason(code, f"The problem cannot be used: {error.message}{place}")
    return Reason("gate-failed", f"The gate could not finish ({step}): {error.message}")


def decide(evidence: Evidence, subject: CandidateKernels) -> tuple[bool, list[Reason], list[dict[str, Any]]]:
    """Accept only when every drawn case was run, answered and judged, and nothing speaks against it."""
    decision = _Decision(evidence, subject)
    for drawn in evidence.drawn:
        decision.case(drawn)
    return decision.end()


class _Decision:
    def __init__(self, evidence: Evidence, subject: CandidateKernels) -> None:
        self.evidence, self.subject = evidence, subject
        self.refusals = list(evidence.reasons)
        self.notes: list[Reason] = []
        self.checks: list[dict[str, Any]] = []
        self.judged = {case.index: case for case in evidence.judged}
        self.ran = {case.index: case for case in evidence.ran.cases} if evidence.ran else {}
        self.answered = {case.index: case for case in evidence.answered.cases} if evidence.answered else {}
        self.compared = 0

    def case(self, drawn: DrawnCase) -> None:
        check: dict[str, Any] = {
            "case": drawn.name, "distribution": drawn.distribution, "shapes": drawn.shapes,
        }  # fmt: skip
        self.checks.append(check)
        if drawn.left_out:
            check["outcome"] = f"left out: {drawn.left_out}"
            if "large" in drawn.left_out and not drawn.derived:
                said = f"The case {drawn.name!r} was not run: {drawn.left_out}."
                self.notes.append(Reason("case-left-out", said))
            return
        self.notes += [Reason("fixed-inputs", f"In the case {drawn.name!r} {n}.") for n in drawn.notes[:1]]
        if not self.evidence.complete:
            check["outcome"] = "not judged"
            return
        if drawn.derived:
            self._derived(drawn, check)
            return
        if self._did_not_take(drawn, check):
            return
        if drawn.index not in self.judged or drawn.index not in self.ran or drawn.index not in self.answered:
            check["outcome"] = "missing"
            self.refusals.append(Reason("incomplete", f"The case {drawn.name!r} was drawn but not answered."))
            return
        at = drawn.index
        judged, ran, answered = self.judged[at], self.ran[at], self.answered[at]
        found = [
            *conduct(ran, judged, self.subject.kernels),
            *judged.reasons,
            *self._tampering(drawn, judged),
        ]
        if drawn.twice and judged.bitwise_repeatable is None and not judged.reasons:
            found.append(Reason("incomplete", "The second run on the same inputs is missing."))
        if answered.layout_fault:
            fault = answered.layout_fault
            found.insert(0, Reason("wrong-shape", f"The outputs do not fit the reference's layout: {fault}."))
        self.refusals += [Reason(r.code, f"In the case {drawn.name!r}: {r.message}") for r in found]
        self.notes += judged.notes
        if answered.note and not self.compared:
            self.notes.append(Reason("not-float64", answered.note))
        self.compared += not judged.skipped and judged.checked > 0
        if judged.checked < 1 and not judged.skipped:
            said = f"In the case {drawn.name!r} {100 * judged.checked:.3g} % of the output was checked."
            self.notes.append(Reason("partly-checked", said))
        check.update(_described(ran, answered.precision, judged, found))

    def _did_not_take(self, drawn: DrawnCase, check: dict[str, Any]) -> bool:
        """Whether the reference, or the candidate alone, does not take values that the gate changed itself: numbers
        above 1 may be no probabilities, and nobody promised that they are taken.
        """
        ran, answered = self.ran.get(drawn.index), self.answered.get(drawn.index)
        if answered is not None and answered.unusable:
            check["outcome"] = "left out: the reference does not take such values"
        elif ran is not None and ran.raised:
            check["outcome"] = "refused"
            said = f"The candidate failed on the case {drawn.name!r}: {ran.raised}"
            self.refusals.append(Reason("kernel-raised", said))
        else:
            return False
        return True

    def _tampering(self, drawn: DrawnCase, judged: JudgedCase) -> list[Reason]:
        found: list[Reason] = []
        if self.answered[drawn.index].digests != drawn.digests:
            found.append(Reason("tampered", "The saved inputs changed while the candidate ran."))
        for name, digest in judged.digests.items():
            if name != "original" and self.evidence.saved.get((drawn.index, name)) != digest:
                found.append(Reason("tampered", "Saved outputs changed after they had been written."))
                break
        return found

    def _derived(self, drawn: DrawnCase, check: dict[str, Any]) -> None:
        """A shape that the gate chose itself: the candidate has to do there what the original does."""
        at = drawn.index
        judged, ran, answered = self.judged.get(at), self.ran.get(at), self.answered.get(at)
        where = f"At the shape {_named(drawn)}"
        if ran is None or answered is None or answered.unusable:
            check["outcome"] = "left out: the reference has no answer there"
            return
        right = judged.original_right if judged is not None else None
        if ran.raised:
            check["outcome"] = f"refused by the kernel: {ran.raised}"
            if right:
                self.refusals.append(
                    Reason("kernel-raised", f"{where}, which the original computes, it failed: {ran.raised}")
                )
            return
        if judged is None:
            check["outcome"] = "missing"
            return
        found = [r for r in judged.reasons if not judged.skipped]
        check.update(_described(ran, answered.precision, judged, found))
        if ran.launched is not None and not set(ran.launched) & set(self.subject.kernels) and not found:
            said = f"{where} it launched no kernel and computed the result in another way."
            self.refusals.append(Reason("fallback", said))
        special = next((f for f in self.evidence.findings if f.code == "special-shape"), None)
        if found and (right or special):
            why = (
                "the original is right there"
                if right
                else f"it singles shapes out on line {special.line if special else 0}"
            )
            self.refusals += [Reason(r.code, f"{where} ({why}): {r.message}") for r in found]
        elif found and drawn.open and not self.subject.rewritten:
            why = "the problem leaves its sizes open, and the kernel does not refuse it"
            self.refusals += [Reason(r.code, f"{where} ({why}): {r.message}") for r in found]
        elif found:
            self.notes.append(
                Reason("not-general", f"{where} it is wrong without saying so: {found[0].message}")
            )

    def end(self) -> tuple[bool, list[Reason], list[dict[str, Any]]]:
        evidence = self.evidence
        if evidence.complete:
            if not self.compared:
                said = "No case could be compared, so nothing is known of the candidate."
                self.refusals.append(Reason("nothing-compared", said))
            refused, told = conduct_of_run(evidence, self.subject, self.judged)
            self.refusals += refused
            self.notes += told
        elif not self.refusals:
            self.refusals.append(Reason("incomplete", "The host ended the check without an answer."))
        accepted = evidence.complete and not self.refusals
        told = [Reason(f.code, f"{f.message} (line {f.line})") for f in evidence.findings if not f.certain]
        full = full_precision(evidence.drawn)
        self.notes += [n for n in told if n.code in TOLD and (full or n.code != "low-precision")]
        return accepted, _unique(self.refusals or self.notes), self.checks


#: Static findings that are worth telling about an accepted candidate; all of them are in the receipt.
TOLD = ("fallback", "background-work", "mode-branch", "reads-files", "low-precision")


def _named(drawn: DrawnCase) -> str:
    return ", ".join(f"{k}={v}" for k, v in (drawn.shape or {}).items())


def _described(ran: RunCase, precision: str, judged: JudgedCase, found: list[Reason]) -> dict[str, Any]:
    outcome = "skipped: " + judged.skipped if judged.skipped else ("failed" if found else "passed")
    return {
        "outcome": outcome,
        "reasons": [r.code for r in found],
        "reference_precision": precision,
        "seconds": round(ran.seconds, 6),
        "launched": sorted(set(ran.launched)) if ran.launched is not None else None,
        "launches": len(ran.launched) if ran.launched is not None else None,
        "complete": ran.complete,
        "checked": judged.checked,
        "bitwise_repeatable": judged.bitwise_repeatable,
        "right_without_kernels": None if judged.idle is None or math.isnan(judged.idle) else judged.idle,
        "outputs": to_plain(judged.outputs),
    }


def _unique(reasons: list[Reason]) -> list[Reason]:
    """Without repetitions; the first of each code first, so that the head of the list tells all kinds there are."""
    unique = list(dict.fromkeys(reasons))
    first = {r.code: r for r in reversed(unique)}
    heads = [r for r in unique if first[r.code] is r]
    return [*heads, *(r for r in unique if first[r.code] is not r)]
