"""The same call run in another way: in another order, on a device, in other configurations, without kernels."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from accelopt_profiling.comparison.elements import compare
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.comparison.memory import byte_count, poisoned_memory
from accelopt_profiling.gate.case_files import ABOUT, CONFIGURATION, beside
from accelopt_profiling.gate.observe.dispatch_mode import poisoned_tensors
from accelopt_profiling.gate.observe.emulation import Seen, emulation, neutralised
from accelopt_profiling.gate.observe.other_devices import other_devices
from accelopt_profiling.gate.observe.provenance import Provenance
from accelopt_profiling.gate.probes.circumstances import equal_bits
from accelopt_profiling.gate.probes.probe import AnsweredCase, AnsweredCheck, Probe
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.step_context import StepFailedError

if TYPE_CHECKING:
    from accelopt_profiling.gate.candidate_run import CandidateRun
    from accelopt_profiling.gate.judge.judged_case import JudgedCase

#: Styles of calls whose files cannot be loaded twice: they register operators, or run as a whole.
_REGISTERED = ("operator", "script")
#: Of elements that are not zero or copies, so many may be there without any kernel having written them.
_IDLE = 0.5


class Reordered(Probe):
    """Loops and programs that promise to take any order take another one: Triton's on other data than the calls before,
    so that what these left is wrong. A program that waits for one that comes later tells nothing.
    """

    name = "another order"
    catches = (
        "Values carried from one iteration of an nl.affine_range, or program of a grid, to the next; places in order "
        "of arrival; flags that earlier calls left set."
    )
    folders = ("reordered",)

    def runs(self, run: CandidateRun) -> None:
        candidate = run.candidate
        index = run.alike if run.params.dialect == "triton" else run.repeated
        if index is None or not candidate.may_reorder:
            return
        run.allow()
        try:
            with run.calling(index, order=run.params.loop_order) as observation:
                outputs = candidate.perform(index, candidate.arguments(index), observation, run.built)
                candidate.save(index, "reordered", outputs, observation)
        except StepFailedError as failed:
            if failed.error.code != "not-judged":
                raise

    def judge(self, case: JudgedCase, actual: list[Leaf]) -> None:
        if not case.answers.has("reordered"):
            return
        loops = "iterations of nl.affine_range or " if case.dialect == "nki" else ""
        order = f"{loops}programs of a grid in another order, which they allow"
        which = f"With {order}, the kernel"
        other = case.further(self.name, actual, "reordered", "order", which)
        masks = case.answers.masks("reordered")
        wrong = case.answers.first_fault(other, masks) if other is not None else None
        if wrong is None or other is None or case.reasons or not _apart(case, actual, other):
            return
        if not _wrong_in_the_original(case, "reordered"):
            case.fail(self.name, "order", f"{which} gives another result: {wrong.detail}.")


class OtherDevices(Probe):
    """A candidate that asks what device it has is loaded and called once more for each of two other devices. What it
    raises there tells nothing.
    """

    name = "other devices"
    catches = "What is right on the target alone, or for its number of processors."
    folders = ("newer device", "small device")

    def runs(self, run: CandidateRun) -> None:
        index, candidate = run.repeated, run.candidate
        if index is None or not candidate.asks_device or run.calls[index].call.style in _REGISTERED:
            return
        for name, device in other_devices(run.params.target).items():
            run.allow()
            with contextlib.suppress(StepFailedError), run.elsewhere(index, device) as observation:
                outputs = candidate.perform(index, candidate.arguments(index), observation)
                candidate.save(index, name, outputs, observation)

    def judge(self, case: JudgedCase, actual: list[Leaf]) -> None:
        for name in self.folders:
            if case.answers.has(name) and not case.reasons:
                wrong = case.wrong_in(self.name, actual, name, "mode-branch", f"On a {name} it")
                if wrong is not None and not _wrong_in_the_original(case, name):
                    case.fail(self.name, "mode-branch", f"On a {name} it is wrong: {wrong.detail}.")


class OnDevice(Probe):
    """The step ``gate.device`` runs the kernel on the host's Trainium, where it has one."""

    name = "device"
    catches = "Kernels that are right in emulation alone."
    folders = ("device",)

    def judge(self, case: JudgedCase, actual: list[Leaf]) -> None:
        if not case.answers.has("device"):
            return
        which = "On the device the kernel"
        wrong = case.wrong_in(self.name, actual, "device", "wrong-on-device", which)
        if wrong is not None:
            case.fail(self.name, "wrong-on-device", f"{which} gives another result: {wrong.detail}.")

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        device = check.evidence.device
        if device is not None and device.failed:
            yield Reason("failed-on-device", f"On the device the kernel failed: {device.failed}")
        elif device is not None and not device.unavailable:
            judged = [check.verdicts[at] for at in device.ran if at in check.verdicts]
            if any("device" not in verdict.digests for verdict in judged):
                yield Reason("tampered", "Saved outputs of the device were gone when they were judged.")

    def notes(self, check: AnsweredCheck) -> Iterator[Reason]:
        device = check.evidence.device
        if device is not None and device.unavailable:
            yield Reason("not-run-on-device", f"It was not run on the device: {device.unavailable}")
        elif device is not None and not device.failed:
            message = f"The host's device computed {len(device.ran)} draws too, and its results were compared as well."
            yield Reason("run-on-device", message)


class Configurations(Probe):
    """Autotuned kernels run in every configuration that a device may choose: each case in another one, the rest on the
    smallest case that tries them, then all of them on the cases with changed values, until enough runs were made.
    """

    name = "configurations"
    catches = "Configurations of an autotuner that are wrong, fail, or add to what an earlier try left."

    def runs(self, run: CandidateRun) -> None:
        configurations, numbers = run.candidate.configurations, itertools.count()
        answered = [n for n in run.others if not run.cases[n].raised]
        plain = [n for n in answered if not run.calls[n].altered]
        sizes = {n: byte_count(run.candidate.arguments(n)) for n in (plain if configurations.left() else [])}
        for index in sorted(sizes, key=lambda n: sizes[n]):
            while untried := configurations.left():
                self._one(run, index, next(numbers))
                if configurations.left() == untried:
                    break  # this case does not get to them
        for index in (n for n in answered if run.calls[n].altered):
            while left_here := configurations.left_in(index):
                number = next(numbers)
                if number >= run.params.budget.configurations:
                    return
                self._one(run, index, number)
                if configurations.left_in(index) == left_here:
                    break

    def _one(self, run: CandidateRun, index: int, number: int) -> None:
        """Run a case in the next configuration.

        The first time it also runs while it is tried, as on a device: a kernel that adds to its output has to reset it.
        """
        candidate, configurations = run.candidate, run.candidate.configurations
        run.allow()
        configurations.next_case(index)
        arguments, first = candidate.arguments(index), not number
        try:
            with run.calling(index, runs_tries=first) as observation:
                outputs = candidate.perform(index, arguments, observation)
                about = configurations.describe() + (", after a run that times it" if first else "")
                candidate.save(index, f"{CONFIGURATION} {number}", outputs, observation, about)
                configurations.chosen()
        except StepFailedError as failed:
            if configurations.refuse(failed):
                return
            message = f"In the configuration {configurations.describe()}: {failed.error.message}"
            raise StepFailedError(replace(failed.error, message=message)) from failed

    def judge(self, case: JudgedCase, actual: list[Leaf]) -> None:
        for path in sorted(case.answers.folder.glob(f"{CONFIGURATION} *")):
            about = (path / ABOUT).read_text(encoding="utf-8", errors="replace")[:300]
            which = f"In the configuration {about}, which a device may choose, it"
            wrong = case.wrong_in(self.name, actual, path.name, "wrong-shape", which)
            if wrong is not None:
                case.fail(self.name, wrong.fault, f"{which} is wrong: {wrong.detail}.")

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        for name, untried in sorted(check.run.untried.items()):
            listed = "; ".join(untried[:3]) + ("; ..." if len(untried) > 3 else "")
            count = "A configuration" if len(untried) == 1 else f"{len(untried)} configurations"
            message = f"{count} of {name} that a device may choose could not be run here ({listed}): leave them out."
            yield Reason("not-run", message)

    def notes(self, check: AnsweredCheck) -> Iterator[Reason]:
        for name, failing in sorted(check.run.refused.items()):
            message = (
                f"{len(failing)} of the configurations of {name} fail an assertion of their own while they are "
                f"compiled ({'; '.join(failing[:3])}): no device chooses them, and they were not run."
            )
            yield Reason("not-run", message)


#: Styles of calls that are given all that their launches' values may come from.
_FOLLOWED = ("returns", "launch", "destination", "model")


class WithoutKernels(Probe):
    """A call with everything poisoned that kernels write. An exception is no fault: it needs its kernels."""

    name = "without kernels"
    catches = "Results that host code or the framework computed, and kernels that only move them about."
    folders = ("idle",)

    def runs(self, run: CandidateRun) -> None:
        provenance = Provenance()
        small = [n for n in run.others if n][:1]
        alike = [n for n in run.others if run.calls[n].altered][:1]  # of the repeated case's shapes
        repeated = [] if run.repeated is None else [run.repeated]
        for index in dict.fromkeys([*(small if small != alike else ()), *repeated, *alike]):
            if run.params.dialect != "numpy":
                self._one(run, index, provenance)
        unseen = max(provenance.computed(), run.candidate.made_elsewhere)
        if unseen > 2 * run.work.largest:  # no operation that was counted can have made these
            run.work.add("what left its arrays", unseen)

    def _one(self, run: CandidateRun, index: int, provenance: Provenance) -> None:
        candidate, params = run.candidate, run.params
        run.allow()
        arguments, plan = candidate.arguments(index), candidate.interpretation(index)
        outputs: list[Any] | None = None
        built: dict[str, Any] = {}
        for inputs, mark in ((run.work.marked(arguments), run.work.marked), (arguments, None)):
            run.work.marking = mark is not None
            provenance.begin()
            if run.repeated is not None and run.calls[index].call.style in _FOLLOWED:
                provenance.give(arguments)  # before kernels write to them
                provenance.give([place.read() for _, place in run.own.places()])  # workspaces, as they are
            with (
                neutralised(
                    params.dialect,
                    params.target,
                    plan=plan,
                    around=run.work.pausing,
                    marked=mark,
                    take=provenance.launch,
                ) as observation,
                poisoned_memory(),
                poisoned_tensors(),
                run.work.counting(),
            ):
                try:
                    outputs = candidate.perform(index, inputs, observation, built)
                    break
                except StepFailedError:
                    provenance.forget()
        if outputs is not None and run.calls[index].call.style == "model":
            provenance.give(list(built["model"].state_dict().values()))
        if outputs is not None:
            with contextlib.suppress(StepFailedError), emulation(params.dialect, params.target):
                candidate.save(index, "idle", _unmarked(outputs), Seen())

    def judge(self, case: JudgedCase, actual: list[Leaf]) -> None:
        from accelopt_profiling.gate.judge.kernel_contribution import right_without_kernels

        if not case.reasons:
            case.idle = right_without_kernels(case.answers, actual, case.known)

    def of_case(self, case: AnsweredCase) -> Iterator[Reason]:
        idle = case.verdict.idle
        if idle is not None and idle >= _IDLE:
            share = f"{100 * idle:.3g} %"
            message = f"With nothing left of what its kernels wrote, {share} of its output was still right."
            yield Reason("kernel-unused", message)

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        if check.run.moved_only and not any(verdict.given for verdict in check.verdicts.values()):
            message = "Its kernels only moved values about: what was to be computed was computed elsewhere."
            yield Reason("framework-compute", message)


def _unmarked(values: Any) -> Any:
    if type(values) in (list, tuple):
        return type(values)(_unmarked(v) for v in values)
    return values.view(np.ndarray) if isinstance(values, np.ndarray) else values


def _wrong_in_the_original(case: JudgedCase, folder: str) -> bool:
    """Check whether the original kernel is wrong too where it was called in the way of ``folder``."""
    leaves = case.answers.read(beside(folder)) if case.answers.has(beside(folder)) else []
    return bool(leaves) and (isinstance(leaves, str) or case.answers.first_fault(leaves) is not None)


def _apart(case: JudgedCase, actual: list[Leaf], other: list[Leaf]) -> bool:
    """True if two runs differ by more than an output may be off."""
    return any(
        compare(b.values, a.values, None, case.answers.allowed(a, number)).fault
        if a.floating
        else not equal_bits(a.values, b.values)
        for number, (a, b) in enumerate(zip(actual, other, strict=True))
    )
