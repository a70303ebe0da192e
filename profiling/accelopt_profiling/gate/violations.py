"""Find what a candidate did that it must not, besides returning wrong numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
from accelopt_profiling.gate.observe.hostwork import DOMINANT, HEAVY, covers, is_heavy
from accelopt_profiling.gate.step_schemas import (
    LATER,
    CaseVerdict,
    DrawnCase,
    OriginalResult,
    RunCase,
    RunResult,
)
from accelopt_profiling.gate.verdict import Reason

#: Of elements that are not zero or copies, so many may be there without any kernel having written them.
_IDLE = 0.5
#: Work of host code counts from this share of the largest input on.
_SHARE = 8


def case_violations(
    run_case: RunCase,
    verdict: CaseVerdict,
    kernels: Collection[str],
    drawn: DrawnCase,
    original: OriginalResult | None,
) -> list[Reason]:
    """Return the violations in one case. A candidate may return memory of an argument where the reference or the
    original does, and write to it what it returns where the original does.
    """
    violations: list[Reason] = []
    if kernels and run_case.launched is not None and not set(run_case.launched) & set(kernels):
        others = f" (only {', '.join(sorted(set(run_case.launched)))})" if run_case.launched else ""
        names = ", ".join(sorted(kernels))
        plural = "None of the kernels" if len(kernels) > 1 else "The kernel"
        violations.append(
            Reason(
                "never-launched",
                f"{plural} {names} was {'' if len(kernels) > 1 else 'not '}launched{others}.",
            )
        )
    if (
        run_case.launched is not None
        and run_case.again is not None
        and len(run_case.again) < len(run_case.launched)
    ):
        counts = f"{len(run_case.again)} kernels instead of {len(run_case.launched)}"
        message = f"A second call on the same data launched {counts}: it remembers results."
        violations.append(Reason("cached-result", message))
    for name, launched in (run_case.later or {}).items():
        if run_case.launched is not None and len(launched) < len(run_case.launched):
            counts = f"{len(launched)} kernels instead of {len(run_case.launched)}"
            violations.append(Reason("mode-branch", f"{LATER[name]} it launched {counts}."))
            break
    in_place = [] if original is None else [a for a in run_case.aliases if a in original.aliases]
    judged = {int(place) for _, place in in_place if place.isdecimal()}  # as an output
    if changed := sorted(
        set(run_case.inputs_changed) - (judged & set(original.inputs_changed if original else ()))
    ):
        listed = ", ".join(map(str, changed))
        violations.append(Reason("inputs-changed", f"It wrote to its inputs (argument {listed})."))
    if aliases := [a for a in run_case.aliases if a not in in_place and a not in drawn.aliases]:
        words = "; ".join(f"output {place} shares memory with input {source}" for place, source in aliases)
        violations.append(Reason("aliases-input", f"It returned memory of an input: {words}."))
    if run_case.reused:
        message = "Two calls returned the same memory, so a result is lost by the next call."
        violations.append(Reason("output-reused", message))
    if verdict.idle is not None and verdict.idle >= _IDLE:
        share = f"{100 * verdict.idle:.3g} %"
        message = f"With nothing left of what its kernels wrote, {share} of its output was still right."
        violations.append(Reason("kernel-unused", message))
    return violations


def run_violations(
    evidence: Evidence, subject: CandidateKernels, verdict: Mapping[int, CaseVerdict]
) -> tuple[list[Reason], list[Reason]]:
    """Return the violations of the run as a whole, and notes about it."""
    run = evidence.run
    if run is None:
        return [], []
    violations = [*_traces(run), *_lanes(evidence, run), *_manners(evidence, run, verdict)]
    notes: list[Reason] = []
    launched = {name for case in run.cases for name in case.launched or []}
    looked = any(case.launched is not None for case in run.cases)
    if looked and subject.kernel and subject.kernel in subject.kernels and subject.kernel not in launched:
        violations.append(Reason("never-launched", f"The kernel {subject.kernel} was not launched."))
    if looked:
        for name in sorted(set(subject.kernels) - launched - {subject.kernel}):
            notes.append(
                Reason("not-run", f"The problem never launches the kernel {name}; it was not checked.")
            )
    for name, left in sorted(run.untried.items()):
        listed = "; ".join(left[:3]) + ("; ..." if len(left) > 3 else "")
        count = "A configuration" if len(left) == 1 else f"{len(left)} configurations"
        message = (
            f"{count} of {name} that a device may choose could not be run here ({listed}): leave them out."
        )
        violations.append(Reason("not-run", message))
    for name, failing in sorted(run.refused.items()):
        message = (
            f"{len(failing)} of the configurations of {name} fail an assertion of their own while they are compiled "
            f"({'; '.join(failing[:3])}): no device chooses them, and they were not run."
        )
        notes.append(Reason("not-run", message))
    if run.moved_only and not any(case.given for case in verdict.values() if case.given is not None):
        message = "Its kernels only moved values about: what was to be computed was computed elsewhere."
        violations.append(Reason("framework-compute", message))
    refused, worth = _host_work(evidence, subject, run)
    violations += refused
    notes += worth
    violations += _precision(evidence, verdict)
    return violations, notes


def _traces(run: RunResult) -> list[Reason]:
    violations: list[Reason] = []
    if run.patched:
        violations.append(Reason("patches", f"It replaced {', '.join(run.patched[:6])}."))
    if run.threads > 0:
        violations.append(Reason("background-work", f"It left {run.threads} threads running."))
    if run.processes > 0:
        violations.append(Reason("background-work", f"It left {run.processes} processes running."))
    if run.races:
        names = ", ".join(run.races)
        message = (
            f"Programs of one launch read or overwrite what others of them write ({names}), in no order."
        )
        violations.append(Reason("race", message))
    if run.keeps:
        message = (
            f"It takes results from what it kept of the data of earlier calls ({', '.join(run.keeps[:3])})."
        )
        violations.append(Reason("cached-result", message))
    if run.late:
        violations.append(Reason("late-write", "An output changed after it had been returned."))
    if run.attributes:
        message = f"Its outputs carry attributes of their own ({', '.join(run.attributes[:4])})."
        violations.append(Reason("own-tensor", message))
    return violations


def _lanes(evidence: Evidence, run: RunResult) -> list[Reason]:
    """Return what lanes of a program read too early or store too early, unless the original's do the like."""
    if not run.lanes or (evidence.plan is not None and evidence.plan.lanes):
        return []
    message = (
        f"Lanes of a program read what other lanes of it store ({', '.join(run.lanes)}) with no barrier between: call "
        "tl.debug_barrier() between the load and the store."
    )
    return [Reason("race", message)]


def _manners(evidence: Evidence, run: RunResult, verdict: Mapping[int, CaseVerdict]) -> list[Reason]:
    """Return what a caller meets besides numbers, where the original (or, without one, the reference) does
    otherwise."""
    violations: list[Reason] = []
    original, reference = evidence.original, evidence.reference
    model = original or reference
    changed = set(run.changed) - set(model.changed if model else ())
    if changed:
        message = f"A call changes {', '.join(sorted(changed)[:3])}, which belongs to whoever calls it."
        violations.append(Reason("changes-state", message))
    if original is not None and run.cases:
        written = {n for case in run.cases for n in case.inputs_changed}
        if left := sorted(set(original.inputs_changed) - written):
            listed = ", ".join(map(str, left))
            message = f"It leaves what it was given as argument {listed}, which the original writes to."
            violations.append(Reason("not-written", message))
    forms = {r.returns_one for r in (original, reference) if r is not None and r.returns_one is not None}
    if forms == {True} and run.returns_one is False:
        message = "It returns a list or tuple where one value is asked for."
        violations.append(Reason("wrong-count", message))
    differs = any(case.bitwise_repeatable is False and not case.reasons for case in verdict.values())
    if differs and (original is None or original.repeatable is not False):
        same = "" if original is None or original.repeatable is None else "; those of the original agree"
        violations.append(
            Reason("nondeterministic", f"Two runs on the same inputs differ in some bits{same}.")
        )
    return violations


def _host_work(
    evidence: Evidence, subject: CandidateKernels, run: RunResult
) -> tuple[list[Reason], list[Reason]]:
    """Check whether host code did the kernels' work: work of its own that the original leaves to its kernels, or all
    that the reference does. Where the original is the reference, what the reference computes is its host code's.
    """
    largest = max(
        (prod(shape) for drawn in evidence.drawn if drawn.twice for shape in drawn.shapes), default=0
    )
    enough = max(1, largest // _SHARE)
    mine = {kind: size for kind, size in run.host_work.items() if size >= enough}
    computed = evidence.reference.work if evidence.reference else {}
    before = evidence.original.host_work if evidence.original else {}
    required = {kind: size for kind, size in computed.items() if size >= enough}
    if subject.runs_itself:
        before, required = computed, {}
    if covers(mine, required):
        message = f"Host code computed all that the reference computes ({', '.join(sorted(mine))})."
        return [Reason("framework-compute", message)], []
    heavy = sorted(kind for kind in mine if is_heavy(kind) and mine[kind] > 2 * before.get(kind, 0))
    if not heavy:
        return [], []
    most = {k: n for k, n in required.items() if k in DOMINANT} or {
        k: n for k, n in required.items() if k in HEAVY
    }
    if covers(mine, most):
        message = f"Host code did the heavy part of the work ({', '.join(heavy)}); kernels only finished it."
        return [Reason("framework-compute", message)], []
    if subject.rewritten:
        message = f"Host code computes what the original leaves to its kernels ({', '.join(heavy)})."
        return [Reason("framework-compute", message)], []
    return [], [Reason("host-work", f"Host code computes too ({', '.join(heavy)}).")]


def _precision(evidence: Evidence, verdict: Mapping[int, CaseVerdict]) -> list[Reason]:
    """Fewer bits than the inputs have, hidden under a generous tolerance of the problem."""
    products = [f for f in evidence.findings if f.code == "lowered-products"]
    if products and full_precision(evidence.drawn):
        return [Reason("low-precision", f"{products[0].message} (line {products[0].line})")]
    lowered = [f for f in evidence.findings if f.code == "low-precision"]
    if not lowered or not full_precision(evidence.drawn):
        return []
    for case in verdict.values():
        for output in case.outputs:
            if (
                output.dtype in ("float32", "float64")
                and output.own_ratio > 1
                and not output.comparison.fault
            ):
                first = lowered[0]
                message = (
                    f"It computes in fewer bits than its inputs have (line {first.line}: {first.message}) and is off "
                    f"by {output.own_ratio:.3g} times what {output.dtype} allows; the problem's tolerance hides it."
                )
                return [Reason("low-precision", message)]
    return []


def full_precision(drawn: list[DrawnCase]) -> bool:
    """Check whether no input has fewer bits than float32."""
    return all(
        d.startswith(("float32", "float64", "int", "bool", "uint")) for case in drawn for d in case.dtypes
    )
