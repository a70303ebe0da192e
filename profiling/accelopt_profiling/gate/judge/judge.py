"""The step ``gate.judge``: compare each case's outputs with the expected values. No user code runs in its process."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from accelopt_profiling.comparison.elements import Array, OutputComparison, compare
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.comparison.memory import is_unwritten
from accelopt_profiling.comparison.outputs import compared_elements, difference
from accelopt_profiling.comparison.saved_values import digest
from accelopt_profiling.gate.judge.kernel_contribution import only_moved, right_without_kernels
from accelopt_profiling.gate.judge.saved_outputs import SavedOutputs
from accelopt_profiling.gate.judge.tolerance_check import judge_tolerance
from accelopt_profiling.gate.probes.probe import ValueProbe
from accelopt_profiling.gate.probes.registry import VALUES
from accelopt_profiling.gate.step_schemas import LATER, CaseVerdict, JudgeParams, OutputVerdict, ReferenceRule
from accelopt_profiling.gate.steps.case_files import (
    ABOUT,
    CONFIGURATION,
    TOLERANCE_FILE,
    case_folder,
    raw_folders,
)
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.problem import Tolerance
from accelopt_profiling.worker.project_modules import leave_project
from accelopt_profiling.worker.step_context import StepContext


def judge(context: StepContext, params: JudgeParams) -> list[CaseVerdict]:
    """Judge every case that has expected values."""
    leave_project()  # this process runs none of the candidate's code
    rule = from_plain(
        ReferenceRule, json.loads((context.folder / "gate" / TOLERANCE_FILE).read_text(encoding="utf-8"))
    )
    stated = rule.tolerance
    judged: list[CaseVerdict] = []
    ordinary_is_finite = first = True
    for index, distribution in enumerate(params.distributions):
        folder = case_folder(context, index)
        if not (folder / "expected").is_dir():
            continue
        known = params.alone or params.replaces or (folder / "original").is_dir()
        probe = VALUES[distribution]
        answers = SavedOutputs(folder, stated, probe.is_exact, rule.settled and known)
        finite = answers.finite()
        if first:
            ordinary_is_finite = finite
        gates_own = distribution != "original" or index in params.own_sizes
        if not finite and ordinary_is_finite and gates_own:
            judged.append(CaseVerdict(index, skipped="the reference itself is not finite on these inputs"))
            continue
        notes: list[Reason] = []
        if first:
            replaced, notes = judge_tolerance(answers)
            stated = Tolerance() if replaced else stated
        first = False
        judged.append(_Case(index, probe, answers, params, notes).judge())
    return judged


def _equal(one: Array, other: Array, *known: Array | None) -> bool:
    """Check whether two outputs agree bit for bit where both are known."""
    for mask in known:
        if mask is not None and mask.shape == one.shape:
            one, other = np.where(mask, one, 0), np.where(mask, other, 0)
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


#: An error may be so many times that of the original kernel in the same case.
AS_FAR = 2.0


class _Case:
    def __init__(
        self, index: int, probe: ValueProbe, answers: SavedOutputs, params: JudgeParams, notes: list[Reason]
    ) -> None:
        self.index, self.probe, self.answers, self.notes = index, probe, answers, notes
        self.dialect, self.alone, self.replaces = params.dialect, params.alone, params.replaces
        self.reasons: list[Reason] = []
        self.known: dict[int, Array] = {}

    def judge(self) -> CaseVerdict:
        answers = self.answers
        found = answers.read("outputs")
        actual = None if isinstance(found, str) else found
        if isinstance(found, str):
            self._fail("wrong-output", found)
        self.known = answers.masks("outputs")
        outputs: list[OutputVerdict] = []
        repeatable: bool | None = None
        if actual is not None and self._same_form(actual):
            outputs = [self._output(number, leaf) for number, leaf in enumerate(actual)]
            if answers.has("again"):
                repeatable = self._repeat(actual, "again")
            if answers.has("late"):
                repeatable = self._repeat(actual, "late") and bool(repeatable)
            for name in LATER:
                if answers.has(name) and not self.reasons:
                    self._later(actual, name)
            if answers.has("reordered"):
                self._reordered(actual)
            if answers.has("device"):
                self._device(actual)
            for raw in raw_folders(answers.folder):
                if raw.startswith(CONFIGURATION):
                    self._configuration(actual, raw)
        digests = {raw: digest(answers.folder / raw) for raw in raw_folders(answers.folder)}
        return CaseVerdict(
            self.index, self.reasons, self.notes, outputs, "", repeatable,
            *compared_elements(actual or [], self.known), digests,
            None if actual is None or self.reasons else right_without_kernels(answers, actual, self.known),
            self.original_right(), only_moved(answers) if answers.has("again") else None,
        )  # fmt: skip

    def _same_form(self, actual: list[Leaf]) -> bool:
        """Compare count, types, shapes, dtypes and layouts of the outputs; each difference is a reason."""
        expected = self.answers.expected
        if len(actual) != len(expected):
            self._fail("wrong-count", f"It returned {len(actual)} outputs, the reference {len(expected)}.")
            return False
        for mine, theirs in zip(actual, self.answers.native, strict=True):
            if self.dialect == "triton" and theirs.library == "torch" and mine.library != "torch":
                self._fail("wrong-type", f"{mine.where} is no torch tensor.")
            elif mine.type_name not in ("", "Tensor", theirs.type_name):
                self._fail("wrong-type", f"{mine.where} is a {mine.type_name}, a kind of tensor of its own.")
            elif mine.shape != theirs.shape:
                message = f"{mine.where} has the shape {mine.shape}, the reference {theirs.shape}."
                self._fail("wrong-shape", message)
            elif mine.dtype not in self._dtypes(theirs):
                message = f"{mine.where} has the dtype {mine.dtype}, the reference {theirs.dtype}."
                self._fail("wrong-dtype", message)
            elif theirs.contiguous and not mine.contiguous:
                message = f"{mine.where} is a view that skips about in memory; the reference's is not."
                self._fail("wrong-layout", message)
        return not self.reasons

    def _dtypes(self, theirs: Leaf) -> set[str]:
        """Return the dtypes an output may have. A NumPy reference that slipped into float64 (through a Python
        number, say) does not ask that of a kernel whose inputs hold no float64."""
        floats = {leaf.dtype for leaf in self.answers.inputs if leaf.floating and leaf.library != "number"}
        if theirs.library == "number":
            return {theirs.dtype, *floats}
        if theirs.library == "numpy" and theirs.dtype == "float64" and floats and "float64" not in floats:
            return {"float64", *floats}
        return {theirs.dtype}

    def _output(self, number: int, mine: Leaf) -> OutputVerdict:
        limit, known = self.answers.allowed(mine, number), self.known.get(number)
        comparison = self._beside_the_original(
            number, self.answers.compare(mine.values, number, limit, known)
        )
        if comparison.fault:
            note = self.probe.excuse(self, mine, comparison)
            if note is not None:
                self.notes.append(note)
            else:
                self.reasons.append(self.probe.cause(mine, comparison) or self._cause(mine, comparison))
        elif known is None and (reason := self.probe.overlooked(self, mine, number)):
            self.reasons.append(reason)
        own = comparison
        if limit.stated:
            strict = self.answers.allowed(mine, number, Tolerance())
            own = self.answers.compare(mine.values, number, strict, known)
        return OutputVerdict(
            mine.where, mine.dtype, list(mine.shape), limit.relative, limit.absolute, comparison, own.worst
        )

    def _cause(self, mine: Leaf, comparison: OutputComparison) -> Reason:
        return self._unwritten(mine) or Reason(comparison.fault, difference(mine, comparison))

    def _unwritten(self, mine: Leaf) -> Reason | None:
        """Return the reason where elements are of memory that nothing wrote."""
        places = is_unwritten(mine.values, mine.dtype)
        count = int(np.count_nonzero(places))
        if not count:
            return None
        first = [int(n) for n in np.unravel_index(int(np.argmax(places)), places.shape)]
        elements = "1 element" if count == 1 else f"{count} elements"
        share = f"{100 * count / places.size:.3g} %"
        return Reason("not-written", f"{mine.where}: nothing wrote {elements} ({share}), first at {first}.")

    def _again(self, actual: list[Leaf], name: str, code: str, which: str) -> list[Leaf] | None:
        """Read a further run's outputs; None, with a reason, unless they have the shapes of the first run's."""
        again = self.answers.read(name)
        if isinstance(again, str):
            self._fail("wrong-output", again)
            return None
        if len(again) != len(actual) or any(a.shape != b.shape for a, b in zip(again, actual, strict=True)):
            self._fail(code, f"{which} returned outputs of other shapes.")
            return None
        return again

    def _repeat(self, actual: list[Leaf], name: str) -> bool:
        """Check whether a further run on the same data gave the same bits; if not, it must be right as well."""
        again = self._again(actual, name, "nondeterministic", "A further run on the same inputs")
        if again is None:
            return False
        masks = self.answers.masks(name)
        equal = all(
            _equal(a.values, b.values, masks.get(n), self.known.get(n))
            for n, (a, b) in enumerate(zip(again, actual, strict=True))
        )
        if not equal:
            wrong = self.answers.first_fault(again, masks)
            if wrong is not None:
                self._fail("nondeterministic", f"A further run on the same inputs is wrong: {wrong.detail}.")
        return equal

    def _later(self, actual: list[Leaf], name: str) -> None:
        """Judge a run under other circumstances."""
        later = self._again(actual, name, "mode-branch", f"{LATER[name]} it")
        wrong = self.answers.first_fault(later, self.answers.masks(name)) if later is not None else None
        if wrong is not None:
            self._fail("mode-branch", f"{LATER[name]} it is wrong on the same inputs: {wrong.detail}.")

    def _configuration(self, actual: list[Leaf], name: str) -> None:
        """Judge a run in a further configuration of an autotuner, which a device may choose."""
        about = (self.answers.folder / name / ABOUT).read_text(encoding="utf-8", errors="replace")[:300]
        which = f"In the configuration {about}, which a device may choose, it"
        further = self._again(actual, name, "wrong-shape", which)
        wrong = self.answers.first_fault(further, self.answers.masks(name)) if further is not None else None
        if wrong is not None:
            self._fail(wrong.fault, f"{which} is wrong: {wrong.detail}.")

    def _reordered(self, actual: list[Leaf]) -> None:
        """Judge the run in which loops that promise to take any order took another one."""
        another = "in another order, which they allow, the kernel"
        which = f"With iterations of nl.affine_range or programs of a grid {another}"
        other = self._again(actual, "reordered", "order", which)
        wrong = self.answers.first_fault(other) if other is not None else None
        if wrong is not None and other is not None and not self.reasons and self._apart(actual, other):
            self._fail("order", f"{which} gives another result: {wrong.detail}.")

    def _device(self, actual: list[Leaf]) -> None:
        """Judge what the device computed, as the outputs of the emulation are."""
        other = self._again(actual, "device", "wrong-on-device", "On the device the kernel")
        wrong = self.answers.first_fault(other) if other is not None else None
        if wrong is not None:
            self._fail("wrong-on-device", f"On the device the kernel gives another result: {wrong.detail}.")

    def _apart(self, actual: list[Leaf], other: list[Leaf]) -> bool:
        """True if two runs differ by more than an output may be off."""
        return any(
            compare(b.values, a.values, None, self.answers.allowed(a, number)).fault
            if a.floating
            else not _equal(a.values, b.values)
            for number, (a, b) in enumerate(zip(actual, other, strict=True))
        )

    def _beside_the_original(self, number: int, comparison: OutputComparison) -> OutputComparison:
        """Return a comparison without its fault where the original kernel is about as far off in the same
        case."""
        if comparison.fault != "wrong-result" or not self.answers.has("original"):
            return comparison
        leaves, expected = self.answers.read("original"), self.answers.expected
        if isinstance(leaves, str) or len(leaves) != len(expected):
            return comparison
        theirs = leaves[number]
        if theirs.shape != expected[number].shape:
            return comparison
        own = self.answers.compare(theirs.values, number, self.answers.allowed(theirs, number))
        as_far = own.fault in ("", "wrong-result") and comparison.worst <= AS_FAR * min(own.worst, 1.0)
        return replace(comparison, fault="", detail="") if as_far else comparison

    def original_right(self) -> bool | None:
        """Check whether the original kernel is right on this case."""
        if not self.answers.has("original"):
            return None
        leaves, expected = self.answers.read("original"), self.answers.expected
        if isinstance(leaves, str) or len(leaves) != len(expected):
            return False
        if any(mine.shape != theirs.shape for mine, theirs in zip(leaves, expected, strict=True)):
            return False
        return self.answers.first_fault(leaves) is None

    def _fail(self, code: str, message: str) -> None:
        self.reasons.append(Reason(code, message))
