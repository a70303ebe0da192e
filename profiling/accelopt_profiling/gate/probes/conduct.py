"""What a candidate does besides returning numbers: to its inputs, to its caller, and in the place of its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from accelopt_profiling.gate.observe.hostwork import DOMINANT, HEAVY, covers, is_heavy
from accelopt_profiling.gate.probes.probe import AnsweredCase, AnsweredCheck, Probe
from accelopt_profiling.gate.step_schemas import DrawnCase
from accelopt_profiling.gate.verdict import Reason

#: Work of host code counts from this share of the largest input on.
_SHARE = 8
#: Host work up to so many times the original's is as much as that.
_AS_MUCH = 2


class Launches(Probe):
    name = "launches"
    catches = "Candidates that do not launch the kernel to rewrite, or none at all; changes of what no call reaches."

    def of_case(self, case: AnsweredCase) -> Iterator[Reason]:
        kernels, launched = set(case.check.subject.kernels), case.run.launched
        if not kernels or launched is None or set(launched) & kernels:
            return
        others = f" (only {', '.join(sorted(set(launched)))})" if launched else ""
        which, never = ("None of the kernels", "") if len(kernels) > 1 else ("The kernel", "not ")
        message = f"{which} {', '.join(sorted(kernels))} was {never}launched{others}."
        yield Reason("never-launched", message)

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        kernel = check.subject.kernel
        if check.looked and kernel and kernel in check.subject.kernels and kernel not in check.launched:
            yield Reason("never-launched", f"The kernel {kernel} was not launched.")
        for finding in (f for f in check.evidence.findings if f.code == "unreached-change"):
            yield Reason(finding.code, f"{finding.message} (line {finding.line})")

    def notes(self, check: AnsweredCheck) -> Iterator[Reason]:
        subject = check.subject
        for name in sorted(set(subject.kernels) - check.launched - {subject.kernel}) if check.looked else ():
            message = f"The problem never launches the kernel {name}; it was not checked."
            yield Reason("not-run", message, kernel=name)


class Inputs(Probe):
    """A candidate may return memory of an argument where the reference or the original does, and write to it what it
    returns where the original does; it has to write where that does.
    """

    name = "inputs and outputs"
    catches = "Inputs that are written to, outputs that share memory with them, and outputs of another form."

    def of_case(self, case: AnsweredCase) -> Iterator[Reason]:
        run, original = case.run, case.check.evidence.original
        in_place = [] if original is None else [a for a in run.aliases if a in original.aliases]
        judged = {int(place) for _, place in in_place if place.isdecimal()}  # as an output
        allowed = judged & set(original.inputs_changed if original else ())
        if changed := sorted(set(run.inputs_changed) - allowed):
            listed = ", ".join(map(str, changed))
            yield Reason("inputs-changed", f"It wrote to its inputs (argument {listed}).")
        if aliases := [a for a in run.aliases if a not in in_place and a not in case.drawn.aliases]:
            words = "; ".join(
                f"output {place} shares memory with input {source}" for place, source in aliases
            )
            yield Reason("aliases-input", f"It returned memory of an input: {words}.")

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        original, reference = check.evidence.original, check.evidence.reference
        if original is not None and check.run.cases:
            written = {n for case in check.run.cases for n in case.inputs_changed}
            if unwritten := sorted(set(original.inputs_changed) - written):
                listed = ", ".join(map(str, unwritten))
                message = f"It leaves what it was given as argument {listed}, which the original writes to."
                yield Reason("not-written", message)
        forms = {r.returns_one for r in (original, reference) if r is not None and r.returns_one is not None}
        if forms == {True} and check.run.returns_one is False:
            yield Reason("wrong-count", "It returns a list or tuple where one value is asked for.")
        if check.run.attributes:
            listed = ", ".join(check.run.attributes[:4])
            yield Reason("own-tensor", f"Its outputs carry attributes of their own ({listed}).")


class CallersState(Probe):
    name = "the caller's state"
    catches = "Functions of others that are replaced, what is left running, and settings of the process that change."

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        run = check.run
        if run.patched:
            yield Reason("patches", f"It replaced {', '.join(run.patched[:6])}.")
        if run.threads > 0:
            yield Reason("background-work", f"It left {run.threads} threads running.")
        if run.processes > 0:
            yield Reason("background-work", f"It left {run.processes} processes running.")
        model = check.evidence.original or check.evidence.reference
        if changed := sorted(set(run.changed) - set(model.changed if model else ())):
            message = f"A call changes {', '.join(changed[:3])}, which belongs to whoever calls it."
            yield Reason("changes-state", message)


class Hashes(Probe):
    """Hashes of strings and of most objects are salted, or addresses: as keys they do no harm."""

    name = "salted hashes"
    catches = "Another way of computing in one process of many, by the hash of a string."

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        original = check.evidence.original
        if check.run.salted and not (original is not None and original.salted):
            message = "It computes with the hash of a string or an object, another number in every process."
            yield Reason("mode-branch", message)


class Races(Probe):
    name = "races"
    catches = (
        "Programs of a launch that read or overwrite what others write; lanes that read what others store."
    )

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        run, plan = check.run, check.evidence.plan
        if run.races:
            names = ", ".join(run.races)
            message = (
                f"Programs of one launch read or overwrite what others of them write ({names}), in no order."
            )
            yield Reason("race", message)
        if run.lanes and not (plan is not None and plan.lanes):  # not where the original's lanes do the like
            message = (
                f"Lanes of a program read what other lanes of it store ({', '.join(run.lanes)}) with no barrier "
                "between: call tl.debug_barrier() between the load and the store."
            )
            yield Reason("race", message)


class HostComputing(Probe):
    """Host code may not do work that the original leaves to its kernels, nor all that the reference does. Where the
    original is the reference, what the reference computes is its host code's.
    """

    name = "host work"
    catches = "Host code or the framework that does the kernels' work, or the heavy part of it."

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        mine, before, required = self._work(check)
        more = [kind for kind in mine if mine[kind] > _AS_MUCH * before.get(kind, 0)]
        heavy = self._heavy(check)
        most = {k: n for k, n in required.items() if k in DOMINANT} or {
            k: n for k, n in required.items() if k in HEAVY
        }
        if more and covers(mine, required):
            message = f"Host code computed all that the reference computes ({', '.join(sorted(mine))})."
        elif heavy and covers(mine, most):
            message = (
                f"Host code did the heavy part of the work ({', '.join(heavy)}); kernels only finished it."
            )
        elif heavy and check.subject.rewritten:
            message = f"Host code computes what the original leaves to its kernels ({', '.join(heavy)})."
        else:
            return
        yield Reason("framework-compute", message)

    def notes(self, check: AnsweredCheck) -> Iterator[Reason]:
        if heavy := self._heavy(check):
            yield Reason("host-work", f"Host code computes too ({', '.join(heavy)}).")

    def _heavy(self, check: AnsweredCheck) -> list[str]:
        mine, before, _ = self._work(check)
        return sorted(kind for kind in mine if is_heavy(kind) and mine[kind] > _AS_MUCH * before.get(kind, 0))

    def _work(self, check: AnsweredCheck) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Return what the candidate's host code computes, the original's, and what the reference does."""
        evidence = check.evidence
        drawn = [prod(shape) for case in evidence.drawn if case.twice for shape in case.shapes]
        enough = max(1, max(drawn, default=0) // _SHARE)
        mine = {kind: size for kind, size in check.run.host_work.items() if size >= enough}
        computed = evidence.reference.work if evidence.reference else {}
        if check.subject.runs_itself:
            return mine, computed, {}
        before = evidence.original.host_work if evidence.original else {}
        return mine, before, {kind: size for kind, size in computed.items() if size >= enough}


class Precision(Probe):
    name = "precision"
    catches = (
        "Fewer bits than the inputs have, hidden under a generous tolerance of the problem; products in TF32."
    )

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        findings = {f.code: f for f in reversed(check.evidence.findings)}
        if not full_precision(check.evidence.drawn):
            return
        if products := findings.get("lowered-products"):
            yield Reason("low-precision", f"{products.message} (line {products.line})")
        elif lowered := findings.get("low-precision"):
            for output in (o for verdict in check.verdicts.values() for o in verdict.outputs):
                single = output.dtype in ("float32", "float64")
                if single and output.own_ratio > 1 and not output.comparison.fault:
                    message = (
                        f"It computes in fewer bits than its inputs have (line {lowered.line}: {lowered.message}) and "
                        f"is off by {output.own_ratio:.3g} times what {output.dtype} allows; the problem's tolerance "
                        "hides it."
                    )
                    yield Reason("low-precision", message)
                    return


class LaunchOnTarget(Probe):
    """The step ``gate.launch`` compiles what the candidate launches for the problem's own inputs."""

    name = "launch on the target"
    catches = "What the target cannot compile or launch."
    leads = True

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        if check.evidence.launch is not None:
            yield from check.evidence.launch.refusals

    def notes(self, check: AnsweredCheck) -> Iterator[Reason]:
        launch = check.evidence.launch
        if launch is not None and launch.launchable.status == "not checked":
            message = f"Whether the target can launch it was not checked: {launch.launchable.detail}."
            yield Reason("launch-not-checked", message)


class FarSizes(Probe):
    """Calls at sizes at which offsets pass 32 bits, on memory that nobody touches, where the original counts in 64."""

    name = "far sizes"
    catches = "Offsets in 32 bits where the original has none."

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        for size, fault in check.evidence.far.items():
            yield Reason("kernel-raised", f"At {size}, which the original's programs take: {fault}")


def full_precision(drawn: list[DrawnCase]) -> bool:
    """Check whether no input as the problem draws it has fewer bits than float32; probes draw narrower ones."""
    own = [d for case in drawn if case.distribution == "original" for d in case.dtypes]
    return all(d.startswith(("float32", "float64", "int", "bool", "uint")) for d in own)
