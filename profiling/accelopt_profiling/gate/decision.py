"""Decide from the evidence: accept the candidate, or refuse it with reasons."""

from __future__ import annotations

import math
from typing import Any

from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
from accelopt_profiling.gate.observe.interpretation import ENOUGH, planned_share
from accelopt_profiling.gate.step_schemas import CaseVerdict, DrawnCase, RunCase
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.gate.violations import case_violations, full_precision, run_violations
from accelopt_profiling.jobs import StepError
from accelopt_profiling.measurement import HOST_FAULTS
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.loading.sizes import size_text

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
    own = step in ("gate.draw", "gate.plan", "gate.reference", "gate.original")
    return own and error.code != "tampered" and error.code not in HOST_FAULTS


def failed_step(step: str, error: StepError, case: str) -> Reason:
    """Return the reason for a step that ended without an answer: the candidate's fault, the problem's, or the
    gate's."""
    place = f" ({error.file}:{error.line})" if error.file and error.line else ""
    if error.code in HOST_FAULTS:
        return Reason("gate-failed", f"The gate could not finish ({step}): {error.message}")
    if step == "gate.run" and error.code == "not-judged":
        return Reason(error.code, f"On the case {case!r} {error.message}" if case else error.message)
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
        self.by_code: dict[str, Reason] = {}  # of what is wrong in a case: the first reason of each code
        self.elsewhere: dict[str, list[str]] = {}  # and the other cases where it is
        self.notes: list[Reason] = []
        self.checks: list[dict[str, Any]] = []
        self.verdicts = {case.index: case for case in evidence.verdicts}
        self.run_cases = {case.index: case for case in evidence.run.cases} if evidence.run else {}
        self.reference_cases = (
            {case.index: case for case in evidence.reference.cases} if evidence.reference else {}
        )
        self.left_out: dict[str, list[str]] = {}  # names of cases that were too large, by the reason
        self.compared = 0
        self.stood_for: DrawnCase | None = None  # the case that only one at smaller sizes could be judged for
        self.partly: list[CaseVerdict] = []  # of cases in which not all of the output was compared

    def case(self, drawn: DrawnCase) -> None:
        check: dict[str, Any] = {
            "case": drawn.name, "distribution": drawn.distribution, "shapes": drawn.shapes,
        }  # fmt: skip
        self.checks.append(check)
        if drawn.left_out:
            check["outcome"] = f"left out: {drawn.left_out}"
            if "large" in drawn.left_out and not drawn.derived:
                self.left_out.setdefault(drawn.left_out, []).append(drawn.name)
            return
        self.notes += [Reason("fixed-inputs", f"In the case {drawn.name!r} {n}.") for n in drawn.notes[:1]]
        if not self.evidence.complete:
            check["outcome"] = "not judged"
            return
        if self.evidence.plan is not None and drawn.index in self.evidence.plan.left_out:
            check["outcome"] = "left out: its launches read what others leave, and all programs are too many"
            self.stood_for = drawn
            return
        if drawn.reduced and self.stood_for is None:
            check["outcome"] = "left out: the main case needs none to stand for it"
            return
        if drawn.derived:
            self._derived(drawn, check)
            return
        if self._did_not_take(drawn, check):
            return
        if (
            drawn.index not in self.verdicts
            or drawn.index not in self.run_cases
            or drawn.index not in self.reference_cases
        ):
            check["outcome"] = "missing"
            self.refusals.append(Reason("incomplete", f"The case {drawn.name!r} was drawn but not answered."))
            return
        at = drawn.index
        verdict, run_case, reference_case = self.verdicts[at], self.run_cases[at], self.reference_cases[at]
        faults = [
            *case_violations(run_case, verdict, self.subject.kernels, drawn, self.evidence.original),
            *verdict.reasons,
            *self._tampering(drawn, verdict),
        ]
        if drawn.twice and verdict.bitwise_repeatable is None and not verdict.reasons:
            faults.append(Reason("incomplete", "The second run on the same inputs is missing."))
        if reference_case.layout_fault:
            message = f"The outputs do not fit the reference's layout: {reference_case.layout_fault}."
            faults.insert(0, Reason("wrong-shape", message))
        faults += [] if faults or verdict.skipped else self._too_little(verdict)
        for fault in faults:
            self._refuse(fault.code, f"In the case {drawn.name!r}: {fault.message}", repr(drawn.name))
        self.notes += verdict.notes
        if reference_case.note and not self.compared:
            self.notes.append(Reason("not-float64", reference_case.note))
        self.compared += not verdict.skipped and verdict.checked > 0
        if verdict.checked < 1 and not verdict.skipped:
            self.partly.append(verdict)
        check.update(_described(run_case, reference_case.precision, verdict, faults))

    def _too_little(self, verdict: CaseVerdict) -> list[Reason]:
        """Return why a case is not judged in which less of the output was checked than was planned for the original."""
        planned = planned_share(self.evidence.plan, verdict.index)
        if verdict.checked >= ENOUGH * planned:
            return []
        could = f"{verdict.compared:,} of {verdict.of:,} elements of the output could be compared"
        why = f"{100 * planned:.3g} % were planned: its launches are too large to be interpreted whole"
        return [Reason("not-judged", f"Only {could}, {why}.")]

    def _did_not_take(self, drawn: DrawnCase, check: dict[str, Any]) -> bool:
        """Check whether the reference, or the candidate alone, does not take values that the gate changed itself:
        numbers above 1 may be no probabilities, and nobody promised that they are taken.
        """
        run_case, reference_case = self.run_cases.get(drawn.index), self.reference_cases.get(drawn.index)
        if reference_case is not None and reference_case.unusable:
            check["outcome"] = "left out: the reference does not take such values"
        elif run_case is not None and run_case.raised:
            check["outcome"] = "refused"
            message = f"The candidate failed on the case {drawn.name!r}: {run_case.raised}"
            self._refuse("kernel-raised", message, repr(drawn.name))
        else:
            return False
        return True

    def _tampering(self, drawn: DrawnCase, verdict: CaseVerdict) -> list[Reason]:
        faults: list[Reason] = []
        if self.reference_cases[drawn.index].digests != drawn.digests:
            faults.append(Reason("tampered", "The saved inputs changed while the candidate ran."))
        for name, digest in verdict.digests.items():
            if name != "original" and self.evidence.output_digests.get((drawn.index, name)) != digest:
                faults.append(Reason("tampered", "Saved outputs changed after they had been written."))
                break
        return faults

    def _derived(self, drawn: DrawnCase, check: dict[str, Any]) -> None:
        """A shape that the gate chose itself: the candidate has to do there what the original does."""
        at = drawn.index
        verdict, run_case, reference_case = (
            self.verdicts.get(at),
            self.run_cases.get(at),
            self.reference_cases.get(at),
        )
        where = f"At the shape {_named(drawn)}"
        if run_case is None or reference_case is None or reference_case.unusable:
            check["outcome"] = "left out: the reference has no answer there"
            return
        right = verdict.original_right if verdict is not None else None
        if run_case.unjudged:
            check["outcome"] = f"left out: {run_case.raised}"
            return
        if run_case.silent:
            check["outcome"] = f"failed: {run_case.raised}"
            self._wrong_at(drawn, [Reason("kernel-raised", run_case.raised)], bool(right))
            return
        if run_case.raised:
            check["outcome"] = f"refused by the kernel: {run_case.raised}"
            if right:
                message = f"{where}, which the original computes, it failed: {run_case.raised}"
                self._refuse("kernel-raised", message, _named(drawn))
            return
        if verdict is None:
            check["outcome"] = "missing"
            return
        faults = [r for r in verdict.reasons if not verdict.skipped]
        check.update(_described(run_case, reference_case.precision, verdict, faults))
        if (
            run_case.launched is not None
            and not set(run_case.launched) & set(self.subject.kernels)
            and not faults
        ):
            message = f"{where} it launched no kernel and computed the result in another way."
            self._refuse("fallback", message, _named(drawn))
        self._wrong_at(drawn, faults, bool(right))

    def _wrong_at(self, drawn: DrawnCase, faults: list[Reason], right: bool) -> None:
        """Refuse a candidate for its ``faults`` at a derived shape, or tell of them. ``right`` tells that the original
        has none there."""
        where = f"At the shape {_named(drawn)}"
        special = next((f for f in self.evidence.findings if f.code == "special-shape"), None)
        if not faults:
            return
        if right:
            why = "the original is right there"
        elif drawn.fixed and not self.subject.rewritten and _is_promised(drawn, faults):
            why = "it takes its sizes from its inputs; made for the stated ones, it has to raise there"
        elif special and not drawn.fixed:
            why = f"it singles shapes out on line {special.line}"
        elif not self.subject.rewritten and _is_promised(drawn, faults):
            why = "the problem leaves its sizes open, and the kernel does not refuse it"
        else:
            message = f"{where} it is wrong without saying so: {faults[0].message}"
            self.notes.append(Reason("not-general", message))
            return
        for fault in faults:
            self._refuse(fault.code, f"{where} ({why}): {fault.message}", _named(drawn))

    def _refuse(self, code: str, message: str, case: str) -> None:
        """Refuse for what is wrong in ``case``: one reason for each code, which names the other cases."""
        if code in self.by_code:
            self.elsewhere.setdefault(code, []).append(case)
        else:
            self.by_code[code] = Reason(code, message)
            self.refusals.append(self.by_code[code])

    def _with_cases(self, reason: Reason) -> Reason:
        cases = list(dict.fromkeys(self.elsewhere.get(reason.code, ())))
        if not cases or self.by_code[reason.code] is not reason:
            return reason
        rest = f" and {len(cases) - _NAMED_CASES} more" if len(cases) > _NAMED_CASES else ""
        return Reason(reason.code, f"{reason.message} So too: {', '.join(cases[:_NAMED_CASES])}{rest}.")

    def _at_smaller_sizes(self) -> None:
        """Say which sizes are smaller than the problem's; a case that stands for the main one has to be right."""
        for drawn in self.evidence.drawn:
            if drawn.smaller and not drawn.reduced and not drawn.index:
                message = f"Its inputs are too large for a check, which was made at {drawn.smaller}."
                self.notes.append(Reason("smaller-sizes", message))
            if not drawn.reduced or self.stood_for is None:
                continue
            if limits := self.evidence.limits:
                message = (
                    f"Its launches are too large to be interpreted, and smaller sizes say little: it compares sizes "
                    f"with {', '.join(map(str, limits[:3]))}."
                )
                self.refusals.append(Reason("not-judged", message))
                return
            verdict, run_case = self.verdicts.get(drawn.index), self.run_cases.get(drawn.index)
            judged = (
                verdict is not None and run_case is not None and not run_case.raised and not verdict.skipped
            )
            if not judged or verdict is None:
                self.refusals.append(
                    Reason("not-judged", f"Its launches are too large, and {drawn.smaller} too.")
                )
                return
            self.refusals += [Reason(r.code, f"At {drawn.smaller}: {r.message}") for r in verdict.reasons]
            self.compared += verdict.checked > 0
            message = f"The case {self.stood_for.name!r} is too large to be interpreted; {drawn.smaller} stands for it."
            self.notes.append(Reason("smaller-sizes", message))

    def end(self) -> tuple[bool, list[Reason], list[dict[str, Any]]]:
        evidence = self.evidence
        if evidence.complete:
            self._at_smaller_sizes()
            self._beyond_limits()
            if not self.compared:
                message = f"No case could be compared, so nothing is known of the candidate{self._why_not()}."
                self.refusals.append(Reason("nothing-compared", message))
            self._on_device()
            self._launchable()
            refused, noted = run_violations(evidence, self.subject, self.verdicts)
            self.refusals += refused
            self.notes += noted
        elif not self.refusals:
            self.refusals.append(Reason("incomplete", "The host ended the check without an answer."))
        if evidence.unsettled and self.refusals:
            message = f"It is near the limit, and further draws could not be compared: {evidence.unsettled}"
            self.refusals.append(Reason("near-limit", f"{message.rstrip('.')}."))
        if self.partly:
            least = min(self.partly, key=lambda v: v.checked)
            cases = "1 case" if len(self.partly) == 1 else f"{len(self.partly)} cases"
            few = "" if len(self.partly) == 1 else "at the fewest "
            elements = f"{few}{least.compared:,} of {least.of:,} elements of the output"
            drawn = "those of programs drawn from all parts of the grid: the launch is large"
            message = f"In {cases} of {len(self.checks)}, {elements} were compared, {drawn}."
            self.notes.append(Reason("partly-checked", message))
        for why, names in self.left_out.items():
            message = f"Not run, since {why}: {', '.join(names)}."
            self.notes.append(Reason("case-left-out", message))
        if any(case.initial for case in self.run_cases.values()):
            message = (
                "Its parameters could not be drawn anew, since they are not laid out as the reference's: it was "
                "checked with those that it was built with."
            )
            self.notes.append(Reason("initial-parameters", message))
        if len({str(d.shapes) for d in evidence.drawn if d.shapes and not d.left_out}) == 1:
            message = "It was checked at one size alone; list others in the problem's `shapes`."
            self.notes.append(Reason("one-size", message))
        accepted = evidence.complete and not self.refusals
        noted = [Reason(f.code, f"{f.message} (line {f.line})") for f in evidence.findings if not f.certain]
        full = full_precision(evidence.drawn)
        self.notes += [n for n in noted if n.code in NOTED and (full or n.code != "low-precision")]
        refusals = [self._with_cases(reason) for reason in self.refusals]
        return accepted, _unique(_first_cause_first(refusals) or self.notes), self.checks

    def _beyond_limits(self) -> None:
        """Say which numbers the candidate compares sizes with that no case is beyond."""
        sizes = [n for d in self.evidence.drawn if not d.left_out for n in _sizes(d)]
        unseen = [n for n in self.evidence.limits if n >= max(sizes, default=0)]
        if unseen and sizes:
            listed = ", ".join(map(str, unseen[:3]))
            message = (
                f"It compares something with {listed}; no case is that large, so nothing is known beyond."
            )
            self.notes.append(Reason("size-limit", message))

    def _on_device(self) -> None:
        """What the host's device said, where it has one: a kernel that fails there is refused."""
        device = self.evidence.device
        if device is None:
            return
        if device.failed:
            self.refusals.append(
                Reason("failed-on-device", f"On the device the kernel failed: {device.failed}")
            )
        elif device.unavailable:
            self.notes.append(
                Reason("not-run-on-device", f"It was not run on the device: {device.unavailable}")
            )
        elif any("device" not in self.verdicts[at].digests for at in device.ran if at in self.verdicts):
            self.refusals.append(
                Reason("tampered", "Saved outputs of the device were gone when they were judged.")
            )
        else:
            message = f"The host's device computed {len(device.ran)} draws too, and its results were compared as well."
            self.notes.append(Reason("run-on-device", message))

    def _launchable(self) -> None:
        """Refuse what the target cannot launch for the problem's own inputs; say where that is not known."""
        launch = self.evidence.launch
        if launch is None:
            return
        self.refusals[:0] = launch.refusals
        if launch.launchable.status == "not checked":
            message = f"Whether the target can launch it was not checked: {launch.launchable.detail}."
            self.notes.append(Reason("launch-not-checked", message))

    def _why_not(self) -> str:
        """Return why no case was compared, as the end of a sentence."""
        why = [d.left_out for d in self.evidence.drawn if d.left_out and not d.derived]
        why += [v.skipped for v in self.verdicts.values() if v.skipped]
        if any(not v.checked for v in self.verdicts.values()):
            why.append("the programs that were run fixed no element of the output")
        why += [
            c["outcome"] for c in self.checks if str(c.get("outcome")).startswith("left out: the reference")
        ]
        return f": {'; '.join(dict.fromkeys(why))}" if why else ""


#: So many further cases a reason names.
_NAMED_CASES = 6
#: Codes of results of another form than the reference's.
_OTHER_FORM = frozenset(["wrong-shape", "wrong-count", "wrong-type", "wrong-dtype", "wrong-output"])
#: Codes of results that are wrong as they are: the first cause, where a later call is wrong as well.
_PLAINLY_WRONG = frozenset(["wrong-result", "not-finite", "missed-not-finite", "wrong-shape", "wrong-dtype"])


def _first_cause_first(reasons: list[Reason]) -> list[Reason]:
    """Sort results that are wrong in any case before those that are wrong after other calls, which follow from them."""
    if not any(r.code in _PLAINLY_WRONG for r in reasons):
        return reasons
    return sorted(reasons, key=lambda r: r.code in ("mode-branch", "nondeterministic"))


#: Static findings that are worth telling about an accepted candidate; all of them are in the receipt.
NOTED = ("fallback", "background-work", "mode-branch", "reads-files", "low-precision")


def _sizes(drawn: DrawnCase) -> list[int]:
    """Return the sizes of a case's arrays, and of their axes."""
    return [n for shape in drawn.shapes for n in (*shape, math.prod(shape))]


def _named(drawn: DrawnCase) -> str:
    shape = drawn.shape or {}
    return ", ".join(size_text(k, v) + (f" for {k}" if k.isdecimal() else "") for k, v in shape.items())


def _is_promised(drawn: DrawnCase, faults: list[Reason]) -> bool:
    """Check whether a candidate without an original has to be right at a derived shape: where the problem leaves its
    sizes open, or where the outputs have the right form there, so that the kernel takes its sizes from its inputs.
    """
    return drawn.open and not (drawn.fixed and any(f.code in _OTHER_FORM for f in faults))


def _described(
    run_case: RunCase, precision: str, verdict: CaseVerdict, faults: list[Reason]
) -> dict[str, Any]:
    outcome = "skipped: " + verdict.skipped if verdict.skipped else ("failed" if faults else "passed")
    return {
        "outcome": outcome,
        "reasons": [r.code for r in faults],
        "reference_precision": precision,
        "seconds": round(run_case.seconds, 6),
        "launched": sorted(set(run_case.launched)) if run_case.launched is not None else None,
        "launches": len(run_case.launched) if run_case.launched is not None else None,
        "complete": run_case.complete,
        "checked": verdict.checked,
        "compared": verdict.compared,
        "of": verdict.of,
        "bitwise_repeatable": verdict.bitwise_repeatable,
        "right_without_kernels": None if verdict.idle is None or math.isnan(verdict.idle) else verdict.idle,
        "outputs": to_plain(verdict.outputs),
    }


def _unique(reasons: list[Reason]) -> list[Reason]:
    """Without repetitions; the first of each code first, so that the head of the list tells all kinds there are."""
    unique = list(dict.fromkeys(reasons))
    first = {r.code: r for r in reversed(unique)}
    heads = [r for r in unique if first[r.code] is r]
    return [*heads, *(r for r in unique if first[r.code] is not r)]
