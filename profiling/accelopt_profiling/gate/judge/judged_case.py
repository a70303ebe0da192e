"""One case while it is judged: its saved outputs against the expected ones, and what speaks against them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accelopt_profiling.comparison.elements import Array, OutputComparison, compare
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.gate.judge.saved_outputs import SavedOutputs
from accelopt_profiling.gate.step_schemas import JudgeParams
from accelopt_profiling.gate.verdict import Refusal

#: An error may be so many times that of the original kernel in the same case.
AS_FAR = 2.0


class JudgedCase:
    """A case while it is judged.

    ``alone`` tells that there is no original besides the candidate, ``replaces`` that what the candidate replaces is
    the reference itself; ``known`` are masks of the elements of outputs that are known, ``asked`` of those that count,
    where not all do.
    """

    def __init__(self, answers: SavedOutputs, params: JudgeParams) -> None:
        self.answers = answers
        self.dialect, self.alone, self.replaces = params.dialect, params.alone, params.replaces
        self.reasons: list[Refusal] = []
        self.known: dict[int, Array] = {}
        self.asked: dict[int, Array] = {}
        self.repeatable: bool | None = None
        self.idle: float | None = None

    def masks(self, folder: str) -> dict[int, Array]:
        """Return masks of the elements of each output of ``folder`` that are known and asked for, where not all are."""
        masks = self.answers.masks(folder)
        both = {n: masks[n] & a for n, a in self.asked.items() if n in masks and masks[n].shape == a.shape}
        return {**self.asked, **masks, **both}

    def has_form(self, probe: str, actual: list[Leaf]) -> bool:
        """Compare count, types, shapes, dtypes and layouts of the outputs.

        Each difference is a reason of ``probe``.
        """
        expected = self.answers.expected
        if len(actual) != len(expected):
            message = f"It returned {len(actual)} outputs, the reference {len(expected)}."
            self.fail(probe, "wrong-count", message)
            return False
        for number, (mine, theirs) in enumerate(zip(actual, self.answers.native, strict=True)):
            if self.dialect == "triton" and theirs.library == "torch" and mine.library != "torch":
                self.fail(probe, "wrong-type", f"{mine.where} is no torch tensor.")
            elif mine.type_name not in ("", "Tensor", theirs.type_name):
                message = f"{mine.where} is a {mine.type_name}, a kind of tensor of its own."
                self.fail(probe, "wrong-type", message)
            elif mine.shape != theirs.shape:
                message = f"{mine.where} has the shape {mine.shape}, the reference {theirs.shape}."
                self.fail(probe, "wrong-shape", message)
            elif mine.dtype not in self._dtypes(theirs) | self._original_dtype(number):
                message = f"{mine.where} has the dtype {mine.dtype}, the reference {theirs.dtype}."
                self.fail(probe, "wrong-dtype", message)
            elif theirs.contiguous and not mine.contiguous and not self._original_skips(number):
                message = f"{mine.where} is a view that skips about in memory; the reference's is not."
                self.fail(probe, "wrong-layout", message)
        return not self.reasons

    def _original_skips(self, number: int) -> bool:
        """Check whether the original's output is a view with gaps as well, such as the gradient of one."""
        theirs = self._of_original(number)
        return theirs is not None and not theirs.contiguous

    def _original_dtype(self, number: int) -> set[str]:
        """Return the dtype of the original's output: it may keep one whatever the inputs have."""
        theirs = self._of_original(number)
        return set() if theirs is None else {theirs.dtype}

    def _of_original(self, number: int) -> Leaf | None:
        leaves = self.answers.read("original") if self.answers.has("original") else ""
        return None if isinstance(leaves, str) or len(leaves) <= number else leaves[number]

    def _dtypes(self, theirs: Leaf) -> set[str]:
        """Return the dtypes an output may have.

        A NumPy reference that slipped into float64 (through a Python number, say) does not ask that of a kernel whose
        inputs hold no float64.
        """
        floats = {leaf.dtype for leaf in self.answers.inputs if leaf.floating and leaf.library != "number"}
        if theirs.library == "number":
            return {theirs.dtype, *floats}
        if theirs.library == "numpy" and theirs.dtype == "float64" and floats and "float64" not in floats:
            return {"float64", *floats}
        return {theirs.dtype}

    def further(
        self, probe: str, actual: list[Leaf], folder: str, code: str, which: str
    ) -> list[Leaf] | None:
        """Read a further call's outputs.

        None, with a reason, unless they have the shapes of the first call's.
        """
        again = self.answers.read(folder)
        if isinstance(again, str):
            self.fail(probe, "wrong-output", again)
            return None
        if len(again) != len(actual) or any(a.shape != b.shape for a, b in zip(again, actual, strict=True)):
            self.fail(probe, code, f"{which} returned outputs of other shapes.")
            return None
        return again

    def wrong_in(
        self, probe: str, actual: list[Leaf], folder: str, code: str, which: str
    ) -> OutputComparison | None:
        """Return what is wrong in a further call's outputs.

        None where nothing is, they have other shapes, or the very bits of the first call's, which are judged as such.
        """
        outputs = self.further(probe, actual, folder=folder, code=code, which=which)
        if outputs is None or all(
            np.array_equal(a.values, b.values, equal_nan=a.floating)
            for a, b in zip(outputs, actual, strict=True)
        ):
            return None
        return self.answers.first_fault(outputs, self.masks(folder))

    def beside_the_original(
        self, mine: Leaf, number: int, comparison: OutputComparison, promised: bool
    ) -> OutputComparison:
        """Return a comparison without its fault where the original kernel is about as far off in the same case, or on
        values that the problem never ``promised`` computes the same.
        """
        if comparison.fault != "wrong-result" or not self.answers.has("original"):
            return comparison
        leaves, expected = self.answers.read("original"), self.answers.expected
        if isinstance(leaves, str) or len(leaves) != len(expected):
            return comparison
        theirs = leaves[number]
        if theirs.shape != expected[number].shape:
            return comparison
        limit, mask = self.answers.allowed(theirs, number), self.asked.get(number)
        own = self.answers.compare(theirs.values, number, limit, mask)
        as_far = own.fault in ("", "wrong-result") and comparison.worst <= AS_FAR * min(own.worst, 1.0)
        if not (as_far or promised) and mine.floating and theirs.floating:
            as_far = not compare(mine.values, theirs.values, None, limit, valid=mask).fault
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
        return self.answers.first_fault(leaves, self.asked) is None

    def fail(self, probe: str, code: str, message: str) -> None:
        self.reasons.append(Refusal(code, message, probe))
