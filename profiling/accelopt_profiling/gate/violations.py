"""Find what a candidate did that it must not, besides returning wrong numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
from accelopt_profiling.gate.observe.hostwork import DOMINANT, HEAVY, covers
from accelopt_profiling.gate.step_schemas import DrawnCase, JudgedCase, RunCase, RunResult
from accelopt_profiling.gate.verdict import Reason

#: Of elements that are not zero or copies, so many may be there without any kernel having written them.
_IDLE = 0.5
#: Work of host code counts from this share of the largest input on.
_SHARE = 8


def conduct(ran: RunCase, judged: JudgedCase, kernels: Collection[str]) -> list[Reason]:
    """What speaks against one case."""
    found: list[Reason] = []
    if kernels and ran.launched is not None and not set(ran.launched) & set(kernels):
        others = f" (only {', '.join(sorted(set(ran.launched)))})" if ran.launched else ""
        names = ", ".join(sorted(kernels))
        plural = "None of the kernels" if len(kernels) > 1 else "The kernel"
        found.append(
            Reason(
                "never-launched",
                f"{plural} {names} was {'' if len(kernels) > 1 else 'not '}launched{others}.",
            )
        )
    if ran.launched is not None and ran.again is not None and len(ran.again) < len(ran.launched):
        counts = f"{len(ran.again)} kernels instead of {len(ran.launched)}"
        said = f"A second call on the same data launched {counts}: it remembers results."
        found.append(Reason("cached-result", said))
    if ran.launched is not None and ran.later is not None and len(ran.later) < len(ran.launched):
        counts = f"{len(ran.later)} kernels instead of {len(ran.launched)}"
        when = "A week and a million calls later, or with gradients turned on or off,"
        found.append(Reason("mode-branch", f"{when} it launched {counts}."))
    if ran.inputs_changed:
        listed = ", ".join(str(n) for n in ran.inputs_changed)
        found.append(Reason("inputs-changed", f"It wrote to its inputs (argument {listed})."))
    if ran.aliases:
        found.append(Reason("aliases-input", f"It returned memory of an input: {'; '.join(ran.aliases)}."))
    if ran.reused:
        said = "Two calls returned the same memory, so a result is lost by the next call."
        found.append(Reason("output-reused", said))
    if judged.idle is not None and judged.idle >= _IDLE:
        said = f"With nothing left of what its kernels wrote, {100 * judged.idle:.3g} % of its output was still right."
        found.append(Reason("kernel-unused", said))
    return found


def conduct_of_run(
    evidence: Evidence, subject: CandidateKernels, judged: Mapping[int, JudgedCase]
) -> tuple[list[Reason], list[Reason]]:
    """What speaks against the run as a whole, and what is worth telling."""
    run = evidence.ran
    if run is None:
        return [], []
    found = _traces(run)
    told: list[Reason] = []
    launched = {name for case in run.cases for name in case.launched or []}
    looked = any(case.launched is not None for case in run.cases)
    if looked and subject.kernel and subject.kernel in subject.kernels and subject.kernel not in launched:
        found.append(Reason("never-launched", f"The kernel {subject.kernel} was not launched."))
    if looked:
        for name in sorted(set(subject.kernels) - launched - {subject.kernel}):
            told.append(
                Reason("not-run", f"The problem never launches the kernel {name}; it was not checked.")
            )
    for name, (left, of) in sorted(run.untried.items()):
        said = f"{left} of {of} configurations of {name} were not run: restrict the list, or check with more cases."
        told.append(Reason("not-run", said))
    if run.moved_only and not any(case.given for case in judged.values() if case.given is not None):
        said = "Its kernels only moved values about: what was to be computed was computed elsewhere."
        found.append(Reason("framework-compute", said))
    refused, worth = _host_work(evidence, subject, run)
    found += refused
    told += worth
    found += _precision(evidence, judged)
    return found, told


def _traces(run: RunResult) -> list[Reason]:
    found: list[Reason] = []
    if run.patched:
        found.append(Reason("patches", f"It replaced {', '.join(run.patched[:6])}."))
    if run.threads > 0:
        found.append(Reason("background-work", f"It left {run.threads} threads running."))
    if run.processes > 0:
        found.append(Reason("background-work", f"It left {run.processes} processes running."))
    if run.races:
        said = f"Programs of one launch read what others of them wrote ({', '.join(run.races)}), in no order."
        found.append(Reason("race", said))
    if run.late:
        found.append(Reason("late-write", "An output changed after it had been returned."))
    if run.attributes:
        said = f"Its outputs carry attributes of their own ({', '.join(run.attributes[:4])})."
        found.append(Reason("own-tensor", said))
    return found


def _host_work(
    evidence: Evidence, subject: CandidateKernels, run: RunResult
) -> tuple[list[Reason], list[Reason]]:
    """Whether host code did the kernels' work: work of its own that the original leaves to its kernels, or all that
    the reference does.
    """
    largest = max(
        (prod(shape) for drawn in evidence.drawn if drawn.twice for shape in drawn.shapes), default=0
    )
    enough = max(1, largest // _SHARE)
    mine = {kind: size for kind, size in run.host_work.items() if size >= enough}
    asked = {k: n for k, n in (evidence.answered.work if evidence.answered else {}).items() if n >= enough}
    if covers(mine, asked):
        said = f"Host code computed all that the reference computes ({', '.join(sorted(mine))})."
        return [Reason("framework-compute", said)], []
    before = evidence.original.host_work if evidence.original else {}
    heavy = sorted(kind for kind in mine if kind in HEAVY and mine[kind] > 2 * before.get(kind, 0))
    if not heavy:
        return [], []
    most = {k: n for k, n in asked.items() if k in DOMINANT} or {k: n for k, n in asked.items() if k in HEAVY}
    if covers(mine, most):
        said = f"Host code did the heavy part of the work ({', '.join(heavy)}); kernels only finished it."
        return [Reason("framework-compute", said)], []
    if subject.rewritten:
        said = f"Host code computes what the original leaves to its kernels ({', '.join(heavy)})."
        return [Reason("framework-compute", said)], []
    return [], [Reason("host-work", f"Host code computes too ({', '.join(heavy)}).")]


def _precision(evidence: Evidence, judged: Mapping[int, JudgedCase]) -> list[Reason]:
    """Fewer bits than the inputs have, hidden under a generous tolerance of the problem."""
    lowered = [f for f in evidence.findings if f.code == "low-precision"]
    if not lowered or not full_precision(evidence.drawn):
        return []
    for case in judged.values():
        for output in case.outputs:
            if (
                output.dtype in ("float32", "float64")
                and output.own_ratio > 1
                and not output.comparison.fault
            ):
                first = lowered[0]
                said = (
                    f"It computes in fewer bits than its inputs have (line {first.line}: {first.message}) and is off "
                    f"by {output.own_ratio:.3g} times what {output.dtype} allows; the problem's tolerance hides it."
                )
                return [Reason("low-precision", said)]
    return []


def full_precision(drawn: list[DrawnCase]) -> bool:
    """Whether no input has fewer bits than float32."""
    return all(
        d.startswith(("float32", "float64", "int", "bool", "uint")) for case in drawn for d in case.dtypes
    )
