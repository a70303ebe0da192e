"""A problem's reference on one set of inputs: in float64, in the inputs' own precision, and on inputs nearby.

References often insist on a dtype, or compute in one of their own whatever they are given; then the most precise
result that can be had is used, and ``Precision`` says what it is.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accelopt_profiling.comparison.inplace_outputs import joined, passed_through, same_values
from accelopt_profiling.comparison.memory import byte_count
from accelopt_profiling.comparison.tolerance import FURTHER, NEARBY, Allowed, allowed, coarsest
from accelopt_profiling.comparison.values import dtype_name
from accelopt_profiling.problems.call import copied
from accelopt_profiling.problems.problem import Problem, ProblemError

Array = np.ndarray[Any, Any]
_CHUNK = 1 << 22  # elements looked at together


def moved(value: Any, by: float, generator: np.random.Generator) -> Any:
    """Return float64 arrays and tensors with each element off by up to ``by`` of its size."""
    if type(value) in (list, tuple):
        return type(value)(moved(v, by, generator) for v in value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor) and value.is_floating_point():
        factors = torch.from_numpy(1.0 + by * generator.uniform(-1, 1, tuple(value.shape)))
        return value * factors.to(value.device)
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value * (1.0 + by * generator.uniform(-1, 1, value.shape))
    return value


def floats(value: Any) -> Array | None:
    """Return an array or tensor of floats as float64, in the same memory if it is that; None for anything else."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        array: Array = value.detach().double().cpu().numpy()
        return array if value.is_floating_point() else None
    if isinstance(value, np.ndarray) and str(value.dtype).startswith(("float", "bfloat")):
        return value.astype(np.float64, copy=False)
    return None


def moves_rows(value: Any, expected: Any, limit: Allowed) -> bool:
    """Check whether a row (last axis) of ``value`` is further from the expected one than the tolerance."""
    if not getattr(expected, "shape", ()) or getattr(value, "shape", None) != expected.shape:
        return False
    columns = max(expected.shape[-1], 1)
    for mine, theirs in zip(_pieces(value, columns), _pieces(expected, columns), strict=True):
        if mine is None or theirs is None:
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            bound = limit.relative * np.linalg.norm(theirs, axis=1) + limit.absolute * math.sqrt(columns)
            if (np.linalg.norm(mine - theirs, axis=1) > bound).any():
                return True
    return False


def farther(one: Array | None, other: Array | None, expected: Array | None) -> Array | None:
    """Return for each element the value of the two that lies farther from the expected one; ``one`` where the three do
    not fit."""
    if one is None or other is None or expected is None or not one.shape == other.shape == expected.shape:
        return one
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(other - expected) > np.abs(one - expected), other, one)


def _pieces(value: Any, columns: int) -> Iterator[Array | None]:
    rows = value.reshape(-1, columns)
    step = max(1, _CHUNK // columns)
    for start in range(0, rows.shape[0], step):
        yield floats(rows[start : start + step])


#: Inputs beyond the first are large; for results of them beyond the second the reference is not run on inputs nearby.
_NEARBY_BYTES, _LARGE_RESULT_BYTES = 8 << 20, 5 << 29
#: Of outputs with so few elements one run says little of how far off another one may be: so many are made.
_FEW_ELEMENTS, _SAMPLES = 256, 8
#: Nor does one run on inputs nearby where they change a row by more than the tolerance: so many are made.
_DRAWS = 6
#: So far beside the inputs, in units of each element, results round otherwise and errors are as large.
_ASIDE = 2.0**-8


@dataclass(frozen=True)
class ExpectedValues:
    """The reference's result in the most precise dtype that it runs in.

    ``precision`` is the dtype of the values, or "exact" where none is a float; ``note`` is a sentence about why the
    reference was not run in float64, "" where it was.
    """

    values: list[Any]
    precision: str
    note: str = ""


class ReferenceRuns:
    """Runs of ``problem.reference``, each made when it is first asked for.

    ``inputs`` gives the inputs, which the runs leave as they are. ``written`` are the arguments that the reference
    writes to as well, counted from the end: None finds that out from its first run.

    Raises:
        ProblemError: the reference returned nothing. Its own exceptions pass through.
    """

    def __init__(
        self, problem: Problem, inputs: Callable[[], list[Any]], written: list[int] | None = None
    ) -> None:
        self.problem, self.inputs, self._written = problem, inputs, written

    @property
    def written(self) -> list[int]:
        """Positions of the arguments that the reference changes, once it has run."""
        return self._written or []

    @cached_property
    def native(self) -> list[Any]:
        """The reference on the inputs as they are. Empty where the problem has no reference."""
        return self._run([copied(value) for value in self.inputs()])

    @cached_property
    def expected(self) -> ExpectedValues:
        """The reference on float64 copies of the inputs, or the most precise run that there is."""
        if not self.problem.own_reference:
            return self._native_only("The original kernel is the reference, in its own precision.")
        native = self.__dict__.get("native")
        if native is not None and coarsest(dtypes(native)) is None:
            return ExpectedValues(native, "exact")
        try:
            values = self._run(self.widened())
        except (
            Exception
        ) as error:  # it may insist on a dtype; if it does not run on its own inputs either, that raises
            why = f"{type(error).__name__}: {error}"[:200]
            return self._native_only(f"The reference does not run in float64 ({why}).")
        if native is not None and len(native) != len(values):
            return self._native_only("The reference returns something else for inputs in float64.")
        own = coarsest(dtypes(values))
        if own is None:
            return ExpectedValues(values, "exact")
        return ExpectedValues(values, own)

    def _native_only(self, note: str) -> ExpectedValues:
        own = coarsest(dtypes(self.native))
        return ExpectedValues(self.native, own or "exact", note if own else "")

    def widened(self) -> list[Any]:
        """Return the inputs in float64, in memory of their own."""
        wide = ((value, widen(value)) for value in self.inputs())
        return [copied(value) if value is other else other for value, other in wide]

    def _run(self, inputs: list[Any]) -> list[Any]:
        try:
            outputs = self.problem.reference(inputs)
        except ProblemError as error:
            if error.code != "problem-empty" or self._written == []:
                raise
            outputs = []
            if self._written is None:
                self._written = self._changed(inputs)
                if not self._written:
                    raise
        if self._written is None:
            self._written = self._changed(inputs)
        return joined(outputs or [], inputs, self._written)

    def _changed(self, after: list[Any]) -> list[int]:
        """Positions of the arguments that a run has changed, where a kernel gets the inputs themselves."""
        before = self.inputs()
        positions = [
            n - len(before)
            for n, (a, b) in enumerate(zip(after, before, strict=True))
            if not same_values(a, b)
        ]
        if not positions:
            return []
        call, arguments = self.problem.call(before)
        if not call.writes or not passed_through(before, arguments):
            return []
        return [n for n in positions if n >= -len(arguments)]

    @cached_property
    def large(self) -> bool:
        """The inputs are so large that runs on inputs nearby are made only for outputs that are refused without."""
        return byte_count(self.inputs()) > _NEARBY_BYTES

    @cached_property
    def nearby(self) -> dict[str, list[Any]]:
        """By name, the float64 reference on inputs that are off by a few roundings ("nearby"), and further off where it
        rounds floats to whole numbers ("further"): empty where that takes long or shows nothing. For large inputs in
        the inputs' precision, to take less memory.
        """
        outputs: dict[str, list[Any]] = {}
        if self.expected.precision not in ("float64", "exact"):
            return outputs
        inputs = self.inputs()
        own = coarsest(dtypes(inputs))
        size = byte_count(self.expected.values)
        if own is None or (self.large and size > _LARGE_RESULT_BYTES):
            return outputs
        near = NEARBY.get(own, NEARBY["float32"])
        floating = [d.startswith(("float", "bfloat")) for d in dtypes(self.expected.values)]
        runs = [("nearby", near)] if any(floating) else []
        for name, by in runs if all(floating) else [*runs, ("further", FURTHER * near)]:
            try:
                values = self._moved(by, 1)
                if len(values) != len(self.expected.values):
                    continue
                if self.large and len(self.native) == len(values):
                    values = narrowed(values, self.native)
                elif name == "nearby" and size <= 8 * _NEARBY_BYTES and self._moves_rows(values, inputs):
                    values = self._farthest(values, by)
            except Exception:  # it did run on the inputs themselves
                return outputs
            outputs[name] = values
        rounding = self._rounding(inputs) if all(floating) else None
        return outputs if rounding is None else {**outputs, "rounding": rounding}

    def _moved(self, by: float, seed: int) -> list[Any]:
        return self._run(moved(self.widened(), by, np.random.default_rng(seed)))

    def _moves_rows(self, values: list[Any], inputs: list[Any]) -> bool:
        """Check whether a row of ``values`` is further from the expected one than the tolerance."""
        return any(
            moves_rows(value, expected, allowed(dtypes([*inputs, value]), self.problem.tolerance))
            for value, expected in zip(values, self.expected.values, strict=True)
        )

    def _farthest(self, values: list[Any], by: float) -> list[Any]:
        """Return for each element the farthest from the expected one among ``values`` and further runs nearby: of
        thousands of rows that are badly conditioned, a single run leaves some unmoved by chance."""
        exact = [floats(value) for value in self.expected.values]
        far = [floats(value) for value in values]
        for seed in range(2, 1 + _DRAWS):
            drawn = [floats(value) for value in self._moved(by, seed)]
            far = [farther(*three) for three in zip(far, drawn, exact, strict=True)]
        return [value if farthest is None else farthest for value, farthest in zip(values, far, strict=True)]

    def _rounding(self, inputs: list[Any]) -> list[Any] | None:
        """Return the expected values, each off by the largest error that the reference makes in the inputs'
        precision on these inputs and on some beside them; None where outputs are large, whose norms tell that
        as well."""
        expected = [floats(value) for value in self.expected.values]
        if self.expected.precision != "float64" or any(e is None for e in expected):
            return None
        if sum(e.size for e in expected if e is not None) > _FEW_ELEMENTS:
            return None
        worst = [np.zeros(e.shape) for e in expected if e is not None]
        for number in range(_SAMPLES):
            by = _ASIDE if number else 0.0
            nearby = moved(self.widened(), by, np.random.default_rng(2 + number))
            try:
                own = [floats(v) for v in self._run(narrowed(nearby, inputs))]
                exact = [floats(v) for v in self._run(widen(narrowed(nearby, inputs)))]
            except Exception:  # it did run on the inputs themselves
                return None
            if len(own) != len(worst) or len(exact) != len(worst):
                return None
            for w, a, b in zip(worst, own, exact, strict=True):
                if a is None or b is None or a.shape != w.shape or b.shape != w.shape:
                    return None
                with np.errstate(invalid="ignore"):
                    np.maximum(w, np.nan_to_num(np.abs(a - b), nan=0.0, posinf=0.0), out=w)
        return [e + w for e, w in zip(expected, worst, strict=True) if e is not None]


def narrowed(value: Any, like: Any) -> Any:
    """Return arrays and tensors in the dtypes of those at the same places of ``like``, in memory of their own."""
    if type(value) in (list, tuple):
        return type(value)(narrowed(v, other) for v, other in zip(value, like, strict=True))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return copied(value).to(like.dtype)
    return value.astype(like.dtype) if isinstance(value, np.ndarray) else copied(value)


def widen(value: Any) -> Any:
    """Return float arrays and tensors as float64, everything else as it is. Lists and tuples inside."""
    if type(value) in (list, tuple):
        return type(value)(widen(v) for v in value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().double() if value.is_floating_point() else value
    if isinstance(value, np.ndarray) and str(value.dtype).startswith(("float", "bfloat")):
        return value.astype(np.float64)
    return value


def dtypes(values: Any) -> list[str]:
    """Return the dtypes of the arrays and numbers in ``values``, lists and tuples inside."""
    if isinstance(values, (list, tuple)):
        return [d for v in values for d in dtypes(v)]
    if type(values) is float:
        return ["float64"]
    return [dtype_name(values.dtype)] if hasattr(values, "dtype") else []
