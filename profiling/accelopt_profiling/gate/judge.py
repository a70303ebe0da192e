"""The fourth step: compare what the candidate returned with what it should have. No user code runs here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from accelopt_profiling.gate.compare import Array, Comparison, compare, compare_exact
from accelopt_profiling.gate.decode import Leaf, read_leaves
from accelopt_profiling.gate.emulation import GateDialect
from accelopt_profiling.gate.files import case_folder, forget_candidate
from accelopt_profiling.gate.tolerance import Allowed, allowed
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.problem import Tolerance
from accelopt_profiling.worker.step import StepContext

TOLERANCE_FILE = "tolerance.json"


@dataclass(frozen=True)
class JudgeParams:
    """``distributions`` has one entry per planned case; ``dialect`` decides how strict types are."""

    dialect: GateDialect
    distributions: list[str]


@dataclass(frozen=True)
class JudgedOutput:
    where: str
    dtype: str
    shape: list[int]
    relative: float
    absolute: float
    comparison: Comparison


@dataclass(frozen=True)
class JudgedCase:
    """``reasons`` are why the case fails; ``notes`` do not. ``skipped`` says why it decides nothing."""

    index: int
    reasons: list[Reason] = field(default_factory=list)
    notes: list[Reason] = field(default_factory=list)
    outputs: list[JudgedOutput] = field(default_factory=list)
    skipped: str = ""
    bitwise_repeatable: bool | None = None
    checked: float = 1.0


def judge(context: StepContext, params: JudgeParams) -> list[JudgedCase]:
    """Judge every case that has expected values."""
    forget_candidate(context)
    stated = from_plain(
        Tolerance, json.loads((context.folder / "gate" / TOLERANCE_FILE).read_text(encoding="utf-8"))
    )
    judged: list[JudgedCase] = []
    ordinary_is_finite = True
    for index, distribution in enumerate(params.distributions):
        folder = case_folder(context, index)
        if not (folder / "expected").is_dir():
            continue
        expected, native = read_leaves(folder / "expected"), read_leaves(folder / "native")
        finite = all(_finite(leaf) for leaf in [*expected, *native])
        if index == 0:
            ordinary_is_finite = finite
        if not finite and ordinary_is_finite and distribution != "original":
            judged.append(JudgedCase(index, skipped="the reference itself is not finite on these inputs"))
            continue
        judged.append(_Case(folder, index, params, stated, expected, native).judge())
    return judged


def _finite(leaf: Leaf) -> bool:
    return not leaf.floating or bool(np.isfinite(leaf.values).all())


def _passes(values: Array, expected: Array, native: Array, limit: Allowed) -> bool:
    """Whether ``values`` would be accepted. Most fail in their first part already."""
    for part in (
        (slice(0, max(1, len(values) // 64)), slice(None)) if values.ndim and len(values) > 64 else (...,)
    ):
        if compare(values[part], expected[part], native[part], limit).fault:
            return False
    return True


class _Case:
    def __init__(
        self,
        folder: Path,
        index: int,
        params: JudgeParams,
        stated: Tolerance,
        expected: list[Leaf],
        native: list[Leaf],
    ) -> None:
        self.folder, self.index, self.params, self.stated = folder, index, params, stated
        self.expected, self.native = expected, native
        self.inputs = read_leaves(folder / "inputs", others=True)
        self.reasons: list[Reason] = []
        self.notes: list[Reason] = []
        self.known: dict[int, Array] = {}

    def judge(self) -> JudgedCase:
        actual = self._read("finished" if (self.folder / "finished").is_dir() else "outputs")
        self.known = self._masks("outputs")
        outputs: list[JudgedOutput] = []
        repeatable: bool | None = None
        if actual is not None and self._same_form(actual):
            known = [self.known.get(n) for n in range(len(actual))]
            parts = zip(actual, self.expected, self.native, known, strict=True)
            outputs = [self._output(*part) for part in parts]
            if (self.folder / "again").is_dir():
                repeatable = self._repeat(actual)
            if self.index == 0:
                self._looseness()
        return JudgedCase(
            self.index, self.reasons, self.notes, outputs, "", repeatable, self._checked(actual)
        )

    def _read(self, name: str) -> list[Leaf] | None:
        try:
            return read_leaves(self.folder / name)
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
        ) as error:  # a candidate may write anything there
            self._fail("wrong-output", f"The candidate's outputs cannot be read: {error}.")
            return None

    def _same_form(self, actual: list[Leaf]) -> bool:
        """Count, type, shape and dtype of the outputs."""
        if len(actual) != len(self.expected):
            self._fail(
                "wrong-count", f"It returned {len(actual)} outputs, the reference {len(self.expected)}."
            )
            return False
        for mine, theirs in zip(actual, self.native, strict=True):
            if self.params.dialect == "triton" and theirs.library == "torch" and mine.library != "torch":
                self._fail("wrong-type", f"{mine.where} is no torch tensor.")
            elif mine.type_name not in ("", "Tensor", "Parameter"):
                self._fail("wrong-type", f"{mine.where} is a {mine.type_name}, a kind of tensor of its own.")
            elif mine.shape != theirs.shape:
                self._fail(
                    "wrong-shape", f"{mine.where} has the shape {mine.shape}, the reference {theirs.shape}."
                )
            elif mine.dtype not in self._dtypes(theirs):
                self._fail(
                    "wrong-dtype", f"{mine.where} has the dtype {mine.dtype}, the reference {theirs.dtype}."
                )
        return not self.reasons

    def _dtypes(self, theirs: Leaf) -> set[str]:
        """The dtypes an output may have. A NumPy reference that slipped into float64 (through a Python
        number, say) does not ask that of a kernel whose inputs hold no float64.
        """
        floats = {leaf.dtype for leaf in self.inputs if leaf.floating and leaf.library != "number"}
        if theirs.library == "number":
            return {theirs.dtype, *floats}
        if theirs.library == "numpy" and theirs.dtype == "float64" and floats and "float64" not in floats:
            return {"float64", *floats}
        return {theirs.dtype}

    def _output(self, mine: Leaf, theirs: Leaf, native: Leaf, known: Array | None) -> JudgedOutput:
        limit = self._allowed(mine)
        comparison = self._compare(mine.values, theirs, native, limit, known)
        if comparison.fault:
            what = {"not-finite": "NaN or infinity where there should be a number",
                    "missed-not-finite": "a number where there should be NaN or infinity"}  # fmt: skip
            said = f"{what[comparison.fault]}: " if comparison.fault in what else ""
            self._fail(comparison.fault, f"{mine.where}: {said}{comparison.detail}.")
        return JudgedOutput(
            mine.where, mine.dtype, list(mine.shape), limit.relative, limit.absolute, comparison
        )

    def _allowed(self, mine: Leaf) -> Allowed:
        dtypes = [leaf.dtype for leaf in self.inputs if leaf.floating and leaf.library != "number"]
        return allowed([*dtypes, mine.dtype], self.stated)

    def _compare(
        self, values: Array, theirs: Leaf, native: Leaf, limit: Allowed, known: Array | None = None
    ) -> Comparison:
        """``known`` marks the elements that were computed; the others are not held against the candidate."""
        expected, own = theirs.values, native.values
        if known is not None and known.shape == values.shape:
            values, expected, own = (np.where(known, array, 0) for array in (values, expected, own))
        if theirs.floating and values.dtype.kind == "f":
            return compare(values, expected, own, limit)
        return compare_exact(values, own)

    def _repeat(self, actual: list[Leaf]) -> bool:
        """Whether a second run on the same data gave the same bits; if not, it must be right as well."""
        name = "finished again" if (self.folder / "finished again").is_dir() else "again"
        again = self._read(name)
        if again is None:
            return False
        if len(again) != len(actual) or any(a.shape != b.shape for a, b in zip(again, actual, strict=True)):
            self._fail(
                "nondeterministic", "A second run on the same inputs returned outputs of other shapes."
            )
            return False
        equal = all(
            np.array_equal(a.values, b.values, equal_nan=a.values.dtype.kind == "f")
            for a, b in zip(again, actual, strict=True)
        )
        if not equal:
            masks = self._masks("again")
            for n, (second, theirs, native) in enumerate(zip(again, self.expected, self.native, strict=True)):
                comparison = self._compare(second.values, theirs, native, self._allowed(second), masks.get(n))
                if comparison.fault:
                    self._fail(
                        "nondeterministic", f"A second run on the same inputs is wrong: {comparison.detail}."
                    )
            self._note(
                "not-repeatable", "Two runs on the same inputs differ in some bits, within the tolerance."
            )
        return equal

    def _masks(self, name: str) -> dict[int, Array]:
        """Which elements of each output are known, where only a sample of the programs was run."""
        masks: dict[int, Array] = {}
        for file in (self.folder / name).glob("known-*.npy"):
            number = file.stem.removeprefix("known-")
            try:
                mask = np.load(file, allow_pickle=False)
            except (OSError, ValueError, EOFError):
                continue
            if number.isdigit() and isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
                masks[int(number)] = mask
        return masks

    def _checked(self, actual: list[Leaf] | None) -> float:
        """The share of output elements that were compared."""
        total = sum(leaf.values.size for leaf in actual or [])
        unknown = sum(
            int(np.count_nonzero(~mask))
            for n, mask in self.known.items()
            if actual is not None and n < len(actual) and mask.shape == actual[n].values.shape
        )
        return 1.0 - unknown / total if total else 1.0

    def _looseness(self) -> None:
        """Say so when the tolerance would let zeros, a constant or a copy of an input pass."""
        for theirs, native in zip(self.expected, self.native, strict=True):
            if not theirs.floating or not theirs.values.size or not _finite(theirs):
                continue
            limit = self._allowed(native)
            mean = theirs.values.mean(dtype=np.float64)
            flat = (("zeros", 0.0), ("its mean", mean))
            fakes: list[tuple[str, Array]] = [
                (n, np.broadcast_to(np.float64(v), theirs.shape)) for n, v in flat
            ]
            fakes += [
                (f"a copy of {leaf.where.replace('output', 'input')}", leaf.values)
                for leaf in self.inputs
                if leaf.floating and leaf.shape == theirs.shape
            ]
            for name, values in fakes:
                if _passes(values, theirs.values, native.values, limit):
                    message = (
                        f"{theirs.where} filled with {name} would pass too: the inputs or the tolerance of the problem "
                        "are too weak to tell a wrong kernel from a right one."
                    )
                    self._note("loose-problem", message)

    def _fail(self, code: str, message: str) -> None:
        self.reasons.append(Reason(code, message))

    def _note(self, code: str, message: str) -> None:
        self.notes.append(Reason(code, message))
