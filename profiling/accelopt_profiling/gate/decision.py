"""Decide from the evidence: a candidate is refused if any probe refuses it, or a case was not answered."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
from accelopt_profiling.gate.observe.interpretation import ENOUGH, planned_share
from accelopt_profiling.gate.probes.conduct import full_precision
from accelopt_profiling.gate.probes.probe import AnsweredCase, AnsweredCheck, Probe
from accelopt_profiling.gate.probes.registry import PROBES, SIZES, VALUES
from accelopt_profiling.gate.step_schemas import CaseVerdict, DrawnCase, RunCase, RunResult
from accelopt_profiling.gate.verdict import Reason, Refusal
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.loading.sizes import size_text

#: So many further cases a reason names.
_NAMED_CASES = 6
#: Codes of results of another form than the reference's.
_OTHER_FORM = frozenset(["wrong-shape", "wrong-count", "wrong-type", "wrong-dtype", "wrong-output"])
#: Codes of results that are wrong as they are: the first cause, where a later call is wrong as well.
_PLAINLY_WRONG = frozenset(["wrong-result", "not-finite", "missed-not-finite", "wrong-shape", "wrong-dtype"])
#: Why cases are left out on which the reference itself, or the original, has no answer.
_VALUES_UNTAKEN = "the reference does not take such values"
_SIZES_UNTAKEN = "the reference has no answer there"
_ORIGINAL_UNTAKEN = "nor does the original take such values"
_UNTAKEN = (_VALUES_UNTAKEN, _SIZES_UNTAKEN, _ORIGINAL_UNTAKEN)
#: Static findings that are worth telling about an accepted candidate; all of them are in the receipt.
_NOTED = ("fallback", "background-work", "mode-branch", "reads-files", "low-precision")


@dataclass(frozen=True)
class Decision:
    """``reasons`` are those for a refusal, or notes about what was accepted.

    ``checks`` are the cases with their outcomes, ``refused_by`` the names of the probes that refuse.
    """

    accepted: bool
    reasons: list[Reason] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    refused_by: list[str] = field(default_factory=list)


def decide(evidence: Evidence, subject: CandidateKernels) -> Decision:
    """Accept only when every drawn case was run, answered and judged, and nothing speaks against the candidate."""
    run = evidence.run or RunResult()
    check = AnsweredCheck(evidence, subject, run, {verdict.index: verdict for verdict in evidence.verdicts})
    refusals = _Refusals([*evidence.reasons])
    cases = _Cases(check, refusals)
    checks = [cases.outcome(drawn) for drawn in evidence.drawn]
    if evidence.complete:
        cases.end(checks)
        for probe in PROBES:
            for reason in probe.of_run(check):
                refusals.add(probe, reason)
    elif not refusals.faults:
        refusals.add(None, Reason("incomplete", "The host ended the check without an answer."))
    if evidence.unsettled and refusals.faults:
        message = f"It is near the limit, and further draws could not be compared: {evidence.unsettled}"
        refusals.add(None, Reason("near-limit", f"{message.rstrip('.')}."))
    accepted = evidence.complete and not refusals.faults
    if not refusals.faults:
        return Decision(accepted, _unique([*cases.notes, *_notes(check, cases)]), checks)
    return Decision(accepted, _unique(_first_cause_first(refusals.reasons())), checks, refusals.probes())


class _Refusals:
    """Reasons to refuse: one for each code of what is wrong in cases, which names the other cases."""

    def __init__(self, faults: list[Refusal]) -> None:
        self.leading: list[Refusal] = []
        self.others = faults
        self._of_cases: dict[str, tuple[Refusal, list[str]]] = {}
        self._probes = [fault.probe for fault in faults]

    def add(self, probe: Probe | None, reason: Reason, case: str = "") -> None:
        """Add what a probe found, in a ``case`` or in the run as a whole."""
        name = probe.name if probe else getattr(reason, "probe", "")
        fault = Refusal(reason.code, reason.message, name)
        self._probes.append(name)
        if case and reason.code in self._of_cases:
            self._of_cases[reason.code][1].append(case)
            return
        if case:
            self._of_cases[reason.code] = fault, []
        (self.leading if probe and probe.leads else self.others).append(fault)

    @property
    def faults(self) -> list[Refusal]:
        return [*self.leading, *self.others]

    def reasons(self) -> list[Reason]:
        return [Reason(fault.code, fault.message + self._so_too(fault)) for fault in self.faults]

    def probes(self) -> list[str]:
        return [name for name in dict.fromkeys(self._probes) if name]

    def _so_too(self, fault: Refusal) -> str:
        first, others = self._of_cases.get(fault.code, (None, []))
        cases = list(dict.fromkeys(others))
        if first is not fault or not cases:
            return ""
        rest = f" and {len(cases) - _NAMED_CASES} more" if len(cases) > _NAMED_CASES else ""
        return f" So too: {', '.join(cases[:_NAMED_CASES])}{rest}."


class _Cases:
    """What the cases of a check say.

    ``left_out`` are names of those beyond the budget, by the reason; ``compared`` counts those of which any output was,
    ``partly`` are those of which not all was; ``stood_for`` is the case that only one at smaller sizes could be judged
    for.
    """

    def __init__(self, check: AnsweredCheck, refusals: _Refusals) -> None:
        self.check, self.evidence, self.refusals = check, check.evidence, refusals
        self.run = {case.index: case for case in check.run.cases}
        reference = self.evidence.reference
        self.reference = {case.index: case for case in reference.cases} if reference else {}
        self.notes: list[Reason] = []
        self.left_out: dict[str, list[str]] = {}
        self.compared = 0
        self.stood_for: DrawnCase | None = None
        self.partly: list[CaseVerdict] = []

    def outcome(self, drawn: DrawnCase) -> dict[str, Any]:
        """Return what became of a case. What is wrong in it is added to the refusals."""
        stated = {"case": drawn.name, "distribution": drawn.distribution, "shapes": drawn.shapes}
        return {**stated, **self._outcome(drawn)}

    def _outcome(self, drawn: DrawnCase) -> dict[str, Any]:
        if drawn.left_out:
            if drawn.beyond_budget:
                self.left_out.setdefault(drawn.left_out, []).append(drawn.name)
            return _ended("left out", drawn.left_out)
        self.notes += [Reason("fixed-inputs", f"In the case {drawn.name!r} {n}.") for n in drawn.notes[:1]]
        if not self.evidence.complete:
            return _ended("not judged")
        if self.evidence.plan is not None and drawn.index in self.evidence.plan.left_out:
            if drawn.derived:
                return _ended("left out", "the original takes too much work there")
            self.stood_for = drawn
            return _ended("left out", "its launches read what others leave, and all programs are too many")
        if drawn.reduced and self.stood_for is None:
            return _ended("left out", "the main case needs none to stand for it")
        return self._at_own_size(drawn) if drawn.derived else self._at_problems_size(drawn)

    def _at_problems_size(self, drawn: DrawnCase) -> dict[str, Any]:
        at = drawn.index
        verdict, run, reference = self.check.verdicts.get(at), self.run.get(at), self.reference.get(at)
        if (
            reference is not None and reference.unusable
        ):  # of values that the gate changed, which nobody promised
            return _ended("left out", _VALUES_UNTAKEN)
        if run is not None and run.raised:
            values = VALUES[drawn.distribution]
            if values.beside_original and not (verdict and verdict.original_right):
                return _ended("left out", _ORIGINAL_UNTAKEN)
            if values.may_raise and not run.silent:
                message = f"In the case {drawn.name!r}, which the original computes, it raises: {run.raised}"
                self.notes.append(Reason("not-general", message))
                return _ended("refused by the kernel", run.raised)
            message = f"The candidate failed on the case {drawn.name!r}: {run.raised}"
            self._refuse(Refusal("kernel-raised", message, drawn.probe), repr(drawn.name))
            return _ended("refused")
        if verdict is None or run is None or reference is None:
            message = f"The case {drawn.name!r} was drawn but not answered."
            self.refusals.add(None, Reason("incomplete", message))
            return _ended("missing")
        case = AnsweredCase(self.check, drawn, run, verdict)
        faults: list[Refusal] = []
        if reference.layout_fault:
            message = f"The outputs do not fit the reference's layout: {reference.layout_fault}."
            faults.append(Refusal("wrong-shape", message, drawn.probe))
        for probe in PROBES:
            faults += [Refusal(r.code, r.message, probe.name) for r in probe.of_case(case)]
        faults += [*verdict.reasons, *self._tampering(case, reference.digests)]
        faults += [] if faults or verdict.skipped else self._too_little(verdict)
        for fault in faults:
            message = f"In the case {drawn.name!r}: {fault.message}"
            self._refuse(Refusal(fault.code, message, fault.probe), repr(drawn.name))
        self.notes += verdict.notes
        if reference.note and not self.compared:
            self.notes.append(Reason("not-float64", reference.note))
        self.compared += not verdict.skipped and verdict.checked > 0
        if verdict.checked < 1 and not verdict.skipped:
            self.partly.append(verdict)
        return _described(run, reference.precision, verdict, faults)

    def _refuse(self, fault: Refusal, case: str) -> None:
        self.refusals.add(None, fault, case)

    def _too_little(self, verdict: CaseVerdict) -> list[Refusal]:
        """Return why a case is not judged in which less of the output was checked than was planned for the original."""
        planned = planned_share(self.evidence.plan, verdict.index)
        if verdict.checked >= ENOUGH * planned:
            return []
        could = f"{verdict.compared:,} of {verdict.of:,} elements of the output could be compared"
        why = f"{100 * planned:.3g} % were planned: its launches are too large to be interpreted whole"
        return [Refusal("not-judged", f"Only {could}, {why}.")]

    def _tampering(self, case: AnsweredCase, inputs: list[str]) -> list[Refusal]:
        faults: list[Refusal] = []
        if inputs != case.drawn.digests:
            faults.append(Refusal("tampered", "The saved inputs changed while the candidate ran."))
        sent = self.evidence.output_digests
        for name, digest in case.verdict.digests.items():
            if not name.startswith("original") and sent.get((case.drawn.index, name)) != digest:
                faults.append(Refusal("tampered", "Saved outputs changed after they had been written."))
                break
        return faults

    def _at_own_size(self, drawn: DrawnCase) -> dict[str, Any]:
        """A shape that the gate chose itself: the candidate has to do there what the original does."""
        at = drawn.index
        verdict, run, reference = self.check.verdicts.get(at), self.run.get(at), self.reference.get(at)
        if run is None or reference is None or reference.unusable:
            return _ended("left out", _SIZES_UNTAKEN)
        if run.unjudged:
            return _ended("left out", run.raised)
        where, right = f"At the shape {_named(drawn)}", bool(verdict is not None and verdict.original_right)
        if run.silent:
            self._wrong_at(drawn, [Refusal("kernel-raised", run.raised)], right)
            return _ended("failed", run.raised)
        if run.raised:
            if right and SIZES[drawn.probe].may_raise:
                self._tell_of_shape(drawn, f"{where}, which the original computes, it raises: {run.raised}")
            elif right:
                message = f"{where}, which the original computes, it failed: {run.raised}"
                self._refuse(Refusal("kernel-raised", message, drawn.probe), _named(drawn))
            return _ended("refused by the kernel", run.raised)
        if verdict is None:
            return _ended("missing")
        faults = [r for r in verdict.reasons if not verdict.skipped]
        launched = run.launched
        if launched is not None and not set(launched) & set(self.check.subject.kernels) and not faults:
            message = f"{where} it launched no kernel and computed the result in another way."
            self._refuse(Refusal("fallback", message, drawn.probe), _named(drawn))
        self._wrong_at(drawn, faults, right)
        return _described(run, reference.precision, verdict, faults)

    def _wrong_at(self, drawn: DrawnCase, faults: list[Refusal], right: bool) -> None:
        """Refuse a candidate for its ``faults`` at a shape of the gate's, or tell of them: of a rewrite where its
        original has faults there too. ``right`` tells that the original has none."""
        if not faults:
            return
        where = f"At the shape {_named(drawn)}"
        lines = [f.line for f in self.evidence.findings if f.code == "special-shape" and not drawn.fixed]
        if right:
            why = "the original is right there"
        elif self.check.subject.rewritten or not (lines or _is_promised(drawn, faults)):
            self._tell_of_shape(drawn, f"{where} it is wrong without saying so: {faults[0].message}")
            return
        elif lines:
            why = f"it singles shapes out on line {lines[0]}"
        elif drawn.fixed:
            why = "it takes its sizes from its inputs; made for the stated ones, it has to raise there"
        else:
            why = "the problem leaves its sizes open, and the kernel does not refuse it"
        for fault in faults:
            message = f"{where} ({why}): {fault.message}"
            self._refuse(Refusal(fault.code, message, drawn.probe), _named(drawn))

    def _tell_of_shape(self, drawn: DrawnCase, message: str) -> None:
        """Note a shape at which the candidate is wrong and need not be right; of further ones their sizes alone."""
        code = "not-general"
        at = next((n for n, note in enumerate(self.notes) if note.code == code), None)
        if at is None:
            self.notes.append(Reason(code, message))
        else:
            self.notes[at] = Reason(code, f"{self.notes[at].message} So too at {_named(drawn)}.")

    def end(self, checks: list[dict[str, Any]]) -> None:
        """Judge what the cases say together, once all were answered."""
        self._at_smaller_sizes()
        if not self.compared:
            why = [d.left_out for d in self.evidence.drawn if d.left_out and not d.derived]
            why += [v.skipped for v in self.check.verdicts.values() if v.skipped]
            if any(not v.checked for v in self.check.verdicts.values()):
                why.append("the programs that were run fixed no element of the output")
            why += [c["why"] for c in checks if c["why"] in _UNTAKEN]
            ending = f": {'; '.join(dict.fromkeys(why))}" if why else ""
            message = f"No case could be compared, so nothing is known of the candidate{ending}."
            self.refusals.add(None, Reason("nothing-compared", message))

    def _at_smaller_sizes(self) -> None:
        """Say which sizes are smaller than the problem's.

        A case that stands for the main one has to be right.
        """
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
                self.refusals.add(None, Reason("not-judged", message))
                return
            verdict, run = self.check.verdicts.get(drawn.index), self.run.get(drawn.index)
            if verdict is None or run is None or run.raised or verdict.skipped:
                message = f"Its launches are too large, and {drawn.smaller} too."
                self.refusals.add(None, Reason("not-judged", message))
                return
            for fault in verdict.reasons:
                message = f"At {drawn.smaller}: {fault.message}"
                self.refusals.add(None, Refusal(fault.code, message, drawn.probe))
            self.compared += verdict.checked > 0
            message = f"The case {self.stood_for.name!r} is too large to be interpreted; {drawn.smaller} stands for it."
            self.notes.append(Reason("smaller-sizes", message))


def _notes(check: AnsweredCheck, cases: _Cases) -> list[Reason]:
    """Return what is worth telling of an accepted candidate besides its cases' own notes."""
    evidence = check.evidence
    notes = [note for probe in PROBES for note in probe.notes(check)]
    sizes = [n for d in evidence.drawn if not d.left_out for n in _sizes(d)]
    unseen = [n for n in evidence.limits if n >= max(sizes, default=0)]
    if unseen and sizes:
        listed = ", ".join(map(str, unseen[:3]))
        message = f"It compares something with {listed}; no case is that large, so nothing is known beyond."
        notes.append(Reason("size-limit", message))
    if cases.partly:
        least = min(cases.partly, key=lambda v: v.checked)
        count = "1 case" if len(cases.partly) == 1 else f"{len(cases.partly)} cases"
        few = "" if len(cases.partly) == 1 else "at the fewest "
        elements = f"{few}{least.compared:,} of {least.of:,} elements of the output"
        drawn = "those of programs drawn from all parts of the grid: the launch is large"
        message = f"In {count} of {len(evidence.drawn)}, {elements} were compared, {drawn}."
        notes.append(Reason("partly-checked", message))
    for why, names in cases.left_out.items():
        notes.append(Reason("case-left-out", f"Not run, since {why}: {', '.join(names)}."))
    if any(case.initial for case in check.run.cases):
        message = (
            "Its parameters could not be drawn anew, since they are not laid out as the reference's: it was checked "
            "with those that it was built with."
        )
        notes.append(Reason("initial-parameters", message))
    if len({str(d.shapes) for d in evidence.drawn if d.shapes and not d.left_out}) == 1:
        message = "It was checked at one size alone; list others in the problem's `shapes`."
        notes.append(Reason("one-size", message))
    remarks = [
        Reason(f.code, f"{f.message} (line {f.line})", line=f.line)
        for f in evidence.findings
        if not f.certain
    ]
    full = full_precision(evidence.drawn)
    return [*notes, *(n for n in remarks if n.code in _NOTED and (full or n.code != "low-precision"))]


def _first_cause_first(reasons: list[Reason]) -> list[Reason]:
    """Sort results that are wrong in any case before those that are wrong after other calls, which follow from them."""
    if not any(r.code in _PLAINLY_WRONG for r in reasons):
        return reasons
    return sorted(reasons, key=lambda r: r.code in ("mode-branch", "nondeterministic"))


def _sizes(drawn: DrawnCase) -> list[int]:
    """Return the sizes of a case's arrays, and of their axes."""
    return [n for shape in drawn.shapes for n in (*shape, math.prod(shape))]


def _named(drawn: DrawnCase) -> str:
    shape = drawn.shape or {}
    return ", ".join(size_text(k, v) + (f" for {k}" if k.isdecimal() else "") for k, v in shape.items())


def _is_promised(drawn: DrawnCase, faults: list[Refusal]) -> bool:
    """Check whether a candidate without an original has to be right at a derived shape: where the problem leaves its
    sizes open, or where the outputs have the right form there, so that the kernel takes its sizes from its inputs.
    """
    return drawn.open and not (drawn.fixed and any(f.code in _OTHER_FORM for f in faults))


def _ended(outcome: str, why: str = "") -> dict[str, Any]:
    """Return what became of a case: a word, and for people why."""
    return {"outcome": outcome, "why": why}


def _described(
    run_case: RunCase, precision: str, verdict: CaseVerdict, faults: list[Refusal]
) -> dict[str, Any]:
    outcome = "skipped" if verdict.skipped else "failed" if faults else "passed"
    return {
        **_ended(outcome, verdict.skipped),
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
    """Without repetitions.

    The first of each code first, so that the head of the list tells all kinds there are.
    """
    unique = list(dict.fromkeys(reasons))
    first = {r.code: r for r in reversed(unique)}
    heads = [r for r in unique if first[r.code] is r]
    return [*heads, *(r for r in unique if first[r.code] is not r)]
