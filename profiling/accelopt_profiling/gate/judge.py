"""The fourth step: compare what the candidate returned with what it should have. No user code runs here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from accelopt_profiling.gate.compare import Array, Comparison, compare, compare_exact
from accelopt_profiling.gate.decode import Leaf, read_leaves
from accelopt_profiling.gate.emulation import GateDialect
from accelopt_profiling.gate.files import FINISHED, RAW, case_folder, forget_candidate
from accelopt_profiling.gate.tolerance import Allowed, allowed
from accelopt_profiling.gate.values import digest
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
    """``own_ratio`` is the worst error over what the gate's own rule allows, whatever the problem says."""

    where: str
    dtype: str
    shape: list[int]
    relative: float
    absolute: float
    comparison: Comparison
    own_ratio: float = 0.0


@dataclass(frozen=True)
class JudgedCase:
    """``reasons`` are why the case fails; ``notes`` do not. ``skipped`` says why it decides nothing. ``digests`` are of
    the candidate's outputs by folder, as they were found here. ``idle`` is the share of the elements that matter which
    were right without any kernel; None where that was not tried. ``original_right`` tells whether the original kernel
    is right at a shape that the gate chose; None where there is no other original. ``given`` tells that all expected
    values occur among the inputs, so that moving data about is enough; None where nobody looked.
    """

    index: int
    reasons: list[Reason] = field(default_factory=list)
    notes: list[Reason] = field(default_factory=list)
    outputs: list[JudgedOutput] = field(default_factory=list)
    skipped: str = ""
    bitwise_repeatable: bool | None = None
    checked: float = 1.0
    digests: dict[str, str] = field(default_factory=dict)
    idle: float | None = None
    original_right: bool | None = None
    given: bool | None = None


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
        case = _Case(folder, index, params, stated, expected, native)
        if index == 0 and case.loose():
            stated = Tolerance()  # what the problem allows tells nothing apart: the gate's own rule holds
        judged.append(case.judge())
    return judged


def _finite(leaf: Leaf) -> bool:
    return not leaf.floating or bool(np.isfinite(leaf.values).all())


def _equal(one: Array, other: Array, *known: Array | None) -> bool:
    """Whether two outputs agree bit for bit where both are known."""
    for mask in known:
        if mask is not None and mask.shape == one.shape:
            one, other = np.where(mask, one, 0), np.where(mask, other, 0)
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


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
        actual = self._read("outputs")
        self.known = self._masks("outputs")
        outputs: list[JudgedOutput] = []
        repeatable: bool | None = None
        if actual is not None and self._same_form(actual):
            known = [self.known.get(n) for n in range(len(actual))]
            parts = zip(actual, self.expected, self.native, known, strict=True)
            outputs = [self._output(*part) for part in parts]
            if (self.folder / "again").is_dir():
                repeatable = self._repeat(actual, "again")
            if (self.folder / "late").is_dir():
                repeatable = self._repeat(actual, "late") and bool(repeatable)
        digests = {raw: digest(self.folder / raw) for raw in RAW if (self.folder / raw).is_dir()}
        return JudgedCase(
            self.index, self.reasons, self.notes, outputs, "", repeatable, self._checked(actual), digests,
            None if actual is None or self.reasons else self._idle(actual), self._original_right(),
            self._given() if (self.folder / "again").is_dir() else None,
        )  # fmt: skip

    def _read(self, name: str) -> list[Leaf] | None:
        finished = self.folder / FINISHED[name]
        try:
            return read_leaves(finished if finished.is_dir() else self.folder / name)
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
            elif theirs.contiguous and not mine.contiguous:
                self._fail(
                    "wrong-layout",
                    f"{mine.where} is a view that skips about in memory; the reference's is not.",
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
        own = comparison
        if limit.stated:
            own = self._compare(mine.values, theirs, native, self._allowed(mine, Tolerance()), known)
        ratio = max(own.whole, own.row, own.element)
        return JudgedOutput(
            mine.where, mine.dtype, list(mine.shape), limit.relative, limit.absolute, comparison, ratio
        )

    def _allowed(self, mine: Leaf, stated: Tolerance | None = None) -> Allowed:
        dtypes = [leaf.dtype for leaf in self.inputs if leaf.floating and leaf.library != "number"]
        return allowed([*dtypes, mine.dtype], self.stated if stated is None else stated)

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

    def _repeat(self, actual: list[Leaf], name: str) -> bool:
        """Whether a further run on the same data gave the same bits; if not, it must be right as well."""
        again = self._read(name)
        if again is None:
            return False
        if len(again) != len(actual) or any(a.shape != b.shape for a, b in zip(again, actual, strict=True)):
            self._fail(
                "nondeterministic", "A further run on the same inputs returned outputs of other shapes."
            )
            return False
        masks = self._masks(name)
        equal = all(
            _equal(a.values, b.values, masks.get(n), self.known.get(n))
            for n, (a, b) in enumerate(zip(again, actual, strict=True))
        )
        if not equal:
            for n, (second, theirs, native) in enumerate(zip(again, self.expected, self.native, strict=True)):
                comparison = self._compare(second.values, theirs, native, self._allowed(second), masks.get(n))
                if comparison.fault:
                    self._fail(
                        "nondeterministic", f"A further run on the same inputs is wrong: {comparison.detail}."
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

    def _idle(self, actual: list[Leaf]) -> float | None:
        """The share of elements that were right while kernels did nothing. Zeros and elements of an input that stayed
        need no kernel; None where no others are left.
        """
        if not (self.folder / "idle").is_dir():
            return None
        idle = self._read_quietly("idle")
        if idle is None or len(idle) != len(actual):
            return None
        same = total = 0
        for mine, full, theirs, native in zip(idle, actual, self.expected, self.native, strict=True):
            if mine.shape != full.shape or mine.values.dtype != full.values.dtype:
                continue
            if theirs.floating and not self._compare(mine.values, theirs, native, self._allowed(mine)).fault:
                close = np.ones(full.shape, bool)
            else:
                close = mine.values == full.values
            matters = (full.values != 0) | (mine.values != full.values)
            for leaf in self.inputs:
                if leaf.shape == full.shape and leaf.library != "number":
                    matters = matters & (full.values != leaf.values)
            total += int(np.count_nonzero(matters))
            same += int(np.count_nonzero(matters & close))
        return same / total if total else None

    def _given(self) -> bool:
        """Whether every finite expected value occurs among the inputs, or is zero or one."""
        pools = [np.array([0.0, 1.0, -1.0])]
        pools += [
            leaf.values.reshape(-1).astype(np.float64)
            for leaf in self.inputs
            if leaf.values.dtype.kind in "fiu"
        ]
        pool = np.concatenate(pools)
        outputs = [
            n.values.reshape(-1).astype(np.float64) for n in self.native if n.values.dtype.kind in "fiu"
        ]
        return all(bool(np.isin(values[np.isfinite(values)], pool).all()) for values in outputs)

    def _read_quietly(self, name: str) -> list[Leaf] | None:
        before = len(self.reasons)
        leaves = self._read(name)
        del self.reasons[before:]
        return leaves

    def _original_right(self) -> bool | None:
        """Whether the original kernel is right on this case."""
        if not (self.folder / "original").is_dir():
            return None
        leaves = self._read_quietly("original")
        if leaves is None or len(leaves) != len(self.expected):
            return False
        for mine, theirs, native in zip(leaves, self.expected, self.native, strict=True):
            if (
                mine.shape != theirs.shape
                or self._compare(mine.values, theirs, native, self._allowed(mine)).fault
            ):
                return False
        return True

    def loose(self) -> bool:
        """Whether the problem states a tolerance under which zeros, a constant or a copy of an input pass. From then on
        the gate's own rule holds for this case. Says so, and says so too where that rule cannot tell either.
        """
        fakes = self._fakes_that_pass()
        stated = self.stated.relative is not None or self.stated.absolute is not None
        replaced = bool(fakes) and stated
        if replaced:
            said = f"Under the problem's tolerance {fakes[0]} would pass; the gate's own rule for the dtype was used."
            self._note("loose-problem", said)
            self.stated = Tolerance()
            fakes = self._fakes_that_pass()
        for fake in fakes:
            message = (
                f"{fake} would pass too: the problem's inputs cannot tell a wrong kernel from a right one."
            )
            self._note("loose-problem", message)
        return replaced

    def _fakes_that_pass(self) -> list[str]:
        found: list[str] = []
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
                    found.append(f"{theirs.where} filled with {name}")
        return found

    def _fail(self, code: str, message: str) -> None:
        self.reasons.append(Reason(code, message))

    def _note(self, code: str, message: str) -> None:
        self.notes.append(Reason(code, message))
