"""Compare one output with what it should be: masks of NaN and infinities first, then errors of whole, rows,
elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelopt_profiling.comparison.tolerance import ELEMENT, NATIVE_ELEMENT, NATIVE_NORM, Allowed

Array = np.ndarray[Any, Any]
_CHUNK = 1 << 18  # elements compared at a time: small enough for a cache, and for little memory


@dataclass(frozen=True)
class OutputComparison:
    """The errors of one output.

    ``whole``, ``row`` and ``element`` are the worst ratios of error to what is allowed (at most 1 passes); ``relative``
    is the relative L2 error; ``location`` is the index of the worst element, with the value found and the value
    expected there. ``fault`` is "" or a stable code: "not-finite", "missed-not-finite", "wrong-result".
    """

    fault: str = ""
    detail: str = ""
    relative: float = 0.0
    whole: float = 0.0
    row: float = 0.0
    element: float = 0.0
    max_abs: float = 0.0
    location: list[int] = field(default_factory=list)
    found: float | None = None
    expected: float | None = None
    checked: float = 1.0

    @property
    def worst(self) -> float:
        """The largest of the ratios."""
        return max(self.whole, self.row, self.element)


def compare(
    actual: Array,
    expected: Array,
    native: Array | None,
    limit: Allowed,
    nearby: Array | None = None,
    valid: Array | None = None,
) -> OutputComparison:
    """Compare float arrays of one shape.

    Errors are computed in float64, piece by piece. ``native`` is the reference in the inputs' own precision, ``nearby``
    what it gives for inputs that are off by a few roundings. Where ``valid`` is False all of them count as 0.
    """
    others = [_rows(array) for array in (native, nearby) if array is not None]
    mask = None if valid is None else _rows(valid)
    return _compare_floats(_Pieces(_rows(actual), _rows(expected), others, mask), limit, actual.shape)


def compare_exact(actual: Array, expected: Array, further: Array | None = None) -> OutputComparison:
    """Compare integers, booleans or complex numbers: every element must be equal.

    Whole numbers that floats were rounded to may be off by one in as many elements as in ``further``, the reference's
    result for inputs further off.
    """
    wrong = actual != expected
    count = int(np.count_nonzero(wrong))
    if not count or (further is not None and _rounded_otherwise(actual, expected, count, further)):
        return OutputComparison()
    place = [int(i) for i in np.argwhere(wrong)[0]] if wrong.ndim else []
    actual_value, expected_value = actual[tuple(place)], expected[tuple(place)]
    detail = f"{count} of {actual.size} elements differ, first at {place}: {actual_value} instead of {expected_value}"
    return OutputComparison("wrong-result", detail, element=math.inf, location=place)


def _rounded_otherwise(actual: Array, expected: Array, count: int, further: Array) -> bool:
    if {array.dtype.kind for array in (actual, expected, further)} - set("iub"):
        return False
    whole = expected.astype(np.int64)
    apart = np.abs(further.astype(np.int64) - whole)
    return (
        count <= int(np.count_nonzero(apart == 1)) and int(np.abs(actual.astype(np.int64) - whole).max()) == 1
    )


def _rows(array: Array) -> Array:
    """As rows along the last axis.

    A vector, or a column of single elements, is one row. No elements are no rows.
    """
    if not array.size:
        return array.reshape(0, 1)
    if array.ndim == 0:
        return array.reshape(1, 1)
    if array.ndim == 1 or array.shape[-1] == 1:
        return array.reshape(1, -1)
    return array.reshape(-1, array.shape[-1])


@dataclass(frozen=True)
class _Pieces:
    """Arrays of rows, to be looked at a few rows at a time. Rows of which nothing is known are passed over."""

    actual: Array
    expected: Array
    others: list[Array]
    known: Array | None

    def __iter__(self) -> Iterator[tuple[int, Array, Array, list[Array]]]:
        """Yield the first row of each piece, and the piece of each array."""
        rows, columns = self.actual.shape
        step = max(1, _CHUNK // max(columns, 1))
        for start in range(0, rows, step):
            piece = slice(start, min(start + step, rows))
            arrays = [array[piece] for array in (self.actual, self.expected, *self.others)]
            if self.known is not None:
                if not self.known[piece].any():
                    continue
                arrays = [np.where(self.known[piece], array, 0) for array in arrays]
            yield start, arrays[0], arrays[1], arrays[2:]


@dataclass
class _Worst:
    row: float = 0.0
    element: float = 0.0
    max_abs: float = 0.0
    place: tuple[int, int] = (0, 0)
    error_squares: float = 0.0
    squares: float = 0.0
    native_squares: float = 0.0


def _compare_floats(pieces: _Pieces, limit: Allowed, shape: Any) -> OutputComparison:
    if (masks := _compare_masks(pieces, shape)) is not None:
        return masks
    actual, expected = pieces.actual, pieces.expected
    worst = _Worst()
    for start, mine, theirs, others in pieces:
        own = [other.astype(np.float64) for other in others]
        _add(
            worst,
            mine.astype(np.float64),
            expected=theirs.astype(np.float64),
            others=own,
            limit=limit,
            start=start,
        )
    count = max(actual.size, 1)
    bound = limit.relative * math.sqrt(worst.squares) + limit.absolute * math.sqrt(count)
    bound += NATIVE_NORM * math.sqrt(worst.native_squares)
    error = math.sqrt(worst.error_squares)
    whole = _ratio(error, bound)
    relative = error / math.sqrt(worst.squares) if worst.squares else (math.inf if error else 0.0)
    place = _unravel(worst.place, actual.shape, shape)
    is_computed = actual.size and (pieces.known is None or pieces.known[worst.place])
    actual_value, expected_value = (
        (float(actual[worst.place]), float(expected[worst.place])) if is_computed else (None, None)
    )
    fault = "wrong-result" if max(whole, worst.row, worst.element) > 1 else ""
    detail = ""
    if fault:
        which = max((whole, "the whole output"), (worst.row, "a row"), (worst.element, "an element"))[1]
        times = max(whole, worst.row, worst.element)
        detail = (
            f"the error of {which} is {times:.3g} times what is allowed "
            f"(relative L2 error {relative:.3g}; worst at {place}: {actual_value:.7g} instead of {expected_value:.7g})"
        )
    return OutputComparison(
        fault,
        detail,
        relative=relative,
        whole=whole,
        row=worst.row,
        element=worst.element,
        max_abs=worst.max_abs,
        location=place,
        found=actual_value,
        expected=expected_value,
    )


def _add(
    worst: _Worst, actual: Array, expected: Array, others: list[Array], limit: Allowed, start: int
) -> None:
    finite = np.isfinite(expected)
    target = expected if finite.all() else np.where(finite, expected, 0.0)
    error = _distance(actual, target, finite)
    columns = max(actual.shape[1], 1)
    own = np.zeros_like(error)
    for other in others:
        own += _distance(other, target, finite)
    row_error, row_norm, row_own = (np.sqrt(np.einsum("ij,ij->i", a, a)) for a in (error, target, own))
    row_bound = limit.relative * row_norm + limit.absolute * math.sqrt(columns) + NATIVE_NORM * row_own
    row_rms, own_rms = row_norm[:, None] / math.sqrt(columns), row_own[:, None] / math.sqrt(columns)
    bound = np.abs(target)
    bound += row_rms
    bound *= ELEMENT * limit.relative
    bound += limit.absolute + NATIVE_ELEMENT * own_rms + own
    ratios = _ratios(error, bound)
    worst.row = max(worst.row, float(_ratios(row_error, row_bound).max(initial=0.0)))
    worst.max_abs = max(worst.max_abs, float(error.max(initial=0.0)))
    if ratios.size and float(ratios.max()) >= worst.element:
        index = int(ratios.argmax())
        worst.element = float(ratios.reshape(-1)[index])
        worst.place = (start + index // actual.shape[1], index % actual.shape[1])
    worst.error_squares += float((row_error * row_error).sum())
    worst.squares += float((row_norm * row_norm).sum())
    worst.native_squares += float((row_own * row_own).sum())


def _distance(values: Array, target: Array, finite: Array) -> Array:
    """Return how far each value is from its target. 0 where the target or the value is not finite."""
    with np.errstate(invalid="ignore"):
        distance = np.subtract(values, target)
    np.abs(distance, out=distance)
    if not np.isfinite(distance.max(initial=0.0)) or not finite.all():
        distance = np.where(finite & np.isfinite(values), distance, 0.0)
    return distance


def _ratio(error: float, bound: float) -> float:
    return error / bound if bound else (math.inf if error else 0.0)


def _ratios(error: Array, bound: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Array = np.divide(error, bound)
    if not bound.all():
        ratios[error == 0.0] = 0.0
    return ratios


def _compare_masks(pieces: _Pieces, shape: Any) -> OutputComparison | None:
    """Return the first place where one is NaN or infinite and the other is not the same; None when there is
    none."""
    for start, mine, theirs, _ in pieces:
        special = ~(np.isfinite(mine) & np.isfinite(theirs))
        if not special.any():
            continue
        same = (np.isnan(mine) & np.isnan(theirs)) | (mine == theirs)
        wrong = special & ~same
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            place = _unravel((start + row, column), pieces.actual.shape, shape)
            own, target = float(mine[row, column]), float(theirs[row, column])
            fault = "not-finite" if math.isfinite(target) else "missed-not-finite"
            detail = (
                f"{_elements(int(np.count_nonzero(wrong)))}, first at {place}: {own} instead of {target:.7g}"
            )
            return OutputComparison(
                fault,
                detail,
                relative=math.inf,
                whole=math.inf,
                row=math.inf,
                element=math.inf,
                max_abs=math.inf,
                location=place,
                found=own,
                expected=target,
            )
    return None


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"


def _unravel(place: tuple[int, int], rows: tuple[int, ...], shape: Any) -> list[int]:
    if not shape:
        return []
    flat = place[0] * rows[1] + place[1]
    return [int(i) for i in np.unravel_index(flat, shape)] if flat < math.prod(shape) else []
