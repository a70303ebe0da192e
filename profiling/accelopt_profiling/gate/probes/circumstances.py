"""Calls again and later: what a candidate computes must not depend on the calls before, on times or on modes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.comparison.memory import byte_count, fingerprint, overlapping
from accelopt_profiling.gate.observe.kept_results import KeptResults
from accelopt_profiling.gate.probes.probe import AnsweredCase, AnsweredCheck, Array, Probe
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.step_context import StepFailedError

if TYPE_CHECKING:
    from accelopt_profiling.gate.candidate_run import CandidateRun
    from accelopt_profiling.gate.judge.judged_case import JudgedCase


class FurtherCalls(Probe):
    """A case is called twice, and after the others again and again.

    The second call's outputs and the last one's are judged, and all must have the same bits. The second call is made by
    the run, right after the first.
    """

    name = "further calls"
    catches = "Results that change from call to call, are remembered, or come in memory given out before."
    folders = ("again", "late")

    def runs(self, run: CandidateRun) -> None:
        if run.repeated is None:
            return
        result, candidate = run.cases[run.repeated], run.candidate
        budget, reused = run.params.budget, result.reused
        repeats = budget.calls(result.work)
        run.allow()
        candidate.configurations.repeat_case(result.index)
        run.watch_own_state()
        for number in range(repeats):
            arguments = candidate.arguments(result.index)
            with run.calling(result.index) as observation:
                outputs = candidate.perform(result.index, arguments, observation, run.built)
                if number < budget.least_repeats:
                    run.counts.look()
                reused = reused or any(overlapping(held, outputs) for held, _ in run.kept)
                if sum(byte_count(held) for held, _ in run.kept) < budget.kept_bytes:
                    run.kept.append((outputs, [fingerprint(o) for o in outputs]))
                if number + 1 == repeats:
                    candidate.save(result.index, "late", outputs, observation)
        run.cases[run.repeated] = replace(result, reused=reused)

    def judge(self, case: JudgedCase, actual: list[Leaf]) -> None:
        for folder in self.folders:
            if case.answers.has(folder):
                before = folder == self.folders[0] or bool(case.repeatable)
                case.repeatable = self._repeats(case, actual, folder) and before

    def _repeats(self, case: JudgedCase, actual: list[Leaf], folder: str) -> bool:
        """Check whether a further call on the same data gave the same bits; if not, it must be right as well."""
        which = "A further run on the same inputs"
        again = case.further(self.name, actual, folder, "nondeterministic", which)
        if again is None:
            return False
        masks = case.answers.masks(folder)
        equal = all(
            equal_bits(a.values, b.values, masks.get(n), case.known.get(n))
            for n, (a, b) in enumerate(zip(again, actual, strict=True))
        )
        wrong = None if equal else case.answers.first_fault(again, masks)
        if wrong is not None:
            case.fail(self.name, "nondeterministic", f"{which} is wrong: {wrong.detail}.")
        return equal

    def of_case(self, case: AnsweredCase) -> Iterator[Reason]:
        launched, again = case.run.launched, case.run.again
        if launched is not None and again is not None and len(again) < len(launched):
            counts = f"{len(again)} kernels instead of {len(launched)}"
            message = f"A second call on the same data launched {counts}: it remembers results."
            yield Reason("cached-result", message)
        if case.run.reused:
            message = "Two calls returned the same memory, so a result is lost by the next call."
            yield Reason("output-reused", message)
        if case.drawn.twice and case.verdict.bitwise_repeatable is None and not case.verdict.reasons:
            yield Reason("incomplete", "The second run on the same inputs is missing.")

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        original = check.evidence.original
        differs = any(v.bitwise_repeatable is False and not v.reasons for v in check.verdicts.values())
        if differs and (original is None or original.repeatable is not False):
            same = "" if original is None or original.repeatable is None else "; those of the original agree"
            yield Reason("nondeterministic", f"Two runs on the same inputs differ in some bits{same}.")


class Later(Probe):
    """Another case's data is given again with gradients switched, then with clocks a week on, then after thousands of
    calls whose launches do nothing, then with every number that the candidate's own code counts calls with moved on by
    a million steps. What it raises tells nothing: numbers that were moved on may have meant something else than a
    count.
    """

    name = "later calls"
    catches = "Another way of computing, or none, for training, after a time, or after many calls."
    #: In words, by the folder of the outputs.
    circumstances = {
        "gradients": "With gradients turned on or off",
        "week": "A week later",
        "often": "Thousands of calls later",
        "calls": "A million calls later",
    }
    folders = tuple(circumstances)

    def runs(self, run: CandidateRun) -> None:
        if run.repeated is None:
            return
        after = [n for n in run.others if n > run.repeated] or run.others
        if run.calls[run.repeated].call.style == "model":  # another case has other weights
            after = [run.repeated]
        for index in after[:1]:
            launched: dict[str, list[str]] = {}
            arguments: list[Any] = []
            for folder in self.folders:
                run.allow()
                if folder == "week":
                    run.clock.advance()
                elif folder == "often":
                    most = 1 + len(run.cases[index].launched or ())
                    run.candidate.call_often(index, arguments, run.built, most)
                elif folder == "calls":
                    run.counts.advance()
                arguments = run.candidate.arguments(index)
                with contextlib.suppress(StepFailedError), run.calling(index) as observation:
                    turned = folder == "gradients"
                    outputs = run.candidate.perform(index, arguments, observation, run.built, turned)
                    run.candidate.save(index, folder, outputs, observation)
                    names = observation.launched()
                    if names is not None:
                        launched[folder] = names
            run.cases[index] = replace(run.cases[index], later=launched)

    def judge(self, case: JudgedCase, actual: list[Leaf]) -> None:
        for folder, when in self.circumstances.items():
            if case.answers.has(folder) and not case.reasons:
                wrong = case.wrong_in(self.name, actual, folder, "mode-branch", f"{when} it")
                if wrong is not None:
                    case.fail(
                        self.name, "mode-branch", f"{when} it is wrong on the same inputs: {wrong.detail}."
                    )

    def of_case(self, case: AnsweredCase) -> Iterator[Reason]:
        for folder, launched in (case.run.later or {}).items():
            if case.run.launched is not None and len(launched) < len(case.run.launched):
                counts = f"{len(launched)} kernels instead of {len(case.run.launched)}"
                yield Reason("mode-branch", f"{self.circumstances[folder]} it launched {counts}.")
                return


class Interleaved(Probe):
    """Where gradients are asked for, another case's data is given between a call and its gradients."""

    name = "interleaved calls"
    catches = "What a call keeps for its gradients in memory that the next call overwrites."
    folders = ("interleaved",)

    def runs(self, run: CandidateRun) -> None:
        index, candidate = run.repeated, run.candidate
        if index is None or run.alike is None or run.alike == index:
            return
        call, module = run.calls[index].call, candidate.module
        if not call.backward or not hasattr(module, call.function):
            return
        own: Callable[..., Any] = getattr(module, call.function)
        others = candidate.arguments(run.alike)
        positional = len(others) - len(call.keywords)
        by_keyword = dict(zip(call.keywords, others[positional:], strict=True))
        following = ModuleType(module.__name__)

        def followed(*arguments: Any, **keywords: Any) -> Any:
            outputs = own(*arguments, **keywords)
            own(*others[:positional], **by_keyword)
            return outputs

        setattr(following, call.function, followed)
        run.allow()
        candidate.module = following
        try:
            with contextlib.suppress(StepFailedError), run.calling(index) as observation:
                outputs = candidate.perform(index, candidate.arguments(index), observation, run.built)
                candidate.save(index, self.folders[0], outputs, observation)
        finally:
            candidate.module = module

    def judge(self, case: JudgedCase, actual: list[Leaf]) -> None:
        if case.answers.has(self.folders[0]) and not case.reasons:
            wrong = case.wrong_in(
                self.name, actual, self.folders[0], "output-reused", "With another call between it"
            )
            if wrong is not None:
                message = f"With another call before its gradients they are wrong: {wrong.detail}."
                case.fail(self.name, "output-reused", message)


class LateWrites(Probe):
    """Outputs of the further calls are compared with what they were when they were returned."""

    name = "late writes"
    catches = "Work that ends after the call has returned."

    def runs(self, run: CandidateRun) -> None:
        run.late = any([fingerprint(o) for o in outputs] != prints for outputs, prints in run.kept)
        run.kept.clear()

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        if check.run.late:
            yield Reason("late-write", "An output changed after it had been returned.")


class Kept(Probe):
    """Calls on data seen before and on new data.

    What the candidate kept of the new data is overwritten, and both calls have to give the same bits again. What it
    raises tells nothing: nobody promised that it takes such data.
    """

    name = "kept results"
    catches = "Results taken from what was kept of earlier calls' data, whatever they are found by."

    def runs(self, run: CandidateRun) -> None:
        index = run.repeated
        if index is None:
            return
        results = KeptResults(run.own)
        with contextlib.suppress(StepFailedError):
            for _ in range(2):
                old, _ = run.bits(index)
                results.look()
            new, elements = run.bits(index, new=True)
            for least in (
                elements // 2,
                0,
            ):  # results without the keys that they are found by, then everything
                names = results.overwrite(least)
                if names and (run.bits(index, new=True)[0] != new or run.bits(index)[0] != old):
                    run.keeps = names
                    break

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        if keeps := check.run.keeps:
            message = (
                f"It takes results from what it kept of the data of earlier calls ({', '.join(keeps[:3])})."
            )
            yield Reason("cached-result", message)


def equal_bits(one: Array, other: Array, *masks: Array | None) -> bool:
    """Check whether two outputs agree bit for bit where both are known."""
    for mask in masks:
        if mask is not None and mask.shape == one.shape:
            one, other = np.where(mask, one, 0), np.where(mask, other, 0)
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
