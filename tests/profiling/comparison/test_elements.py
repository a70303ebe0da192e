"""The arithmetic of the gate: tolerances, errors of whole, rows and elements, and the distributions of inputs."""

# ruff: noqa: E501 - tables, one case a line

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support.drawn_values import values_of

from accelopt_profiling.comparison.elements import compare, compare_exact
from accelopt_profiling.comparison.tolerance import Allowed, allowed, coarsest
from accelopt_profiling.gate.cases import plan_cases
from accelopt_profiling.gate.probes.registry import VALUES
from accelopt_profiling.gate.probes.rewriting import Shuffled
from accelopt_profiling.gate.request import CaseOptions
from accelopt_profiling.problems.problem import Tolerance

LIMIT = Allowed(2e-5, 0.0)
OTHERS = [name for name in VALUES if name != "original"]
finite = arrays.arrays(
    np.float32, arrays.array_shapes(max_dims=3, max_side=8), elements=st.floats(-1e3, 1e3, width=32)
)


def random(*shape: int) -> Any:
    return np.random.default_rng(7).standard_normal(shape)


@given(finite)
@settings(max_examples=60, deadline=None)
def test_equal_arrays_agree(array: Any) -> None:
    result = compare(array, array, array, LIMIT)
    assert (result.fault, result.relative, result.element) == ("", 0.0, 0.0)


@given(finite, st.data())
@settings(max_examples=60, deadline=None)
def test_one_broken_element_is_found_where_it_is(array: Any, data: st.DataObject) -> None:
    flat = data.draw(st.integers(0, array.size - 1))
    broken = array.copy()
    broken.reshape(-1)[flat] += 1e4
    result = compare(broken, array, array, LIMIT)
    assert result.fault == "wrong-result"
    assert result.location == [int(i) for i in np.unravel_index(flat, array.shape)]


def test_a_wrong_row_does_not_hide_behind_large_ones() -> None:
    expected = random(64, 32) * np.logspace(0, 6, 64)[:, None]
    actual = expected.copy()
    actual[0] = 0.0
    result = compare(actual, expected, expected, LIMIT)
    assert result.relative < LIMIT.relative
    assert result.whole <= 1 < result.row
    assert result.fault == "wrong-result"


def test_a_wrong_element_does_not_hide_in_a_long_row() -> None:
    expected = random(4, 1 << 16)
    actual = expected.copy()
    actual[2, 77] += 4e-3
    result = compare(actual, expected, expected, LIMIT)
    assert result.row <= 1 < result.element
    assert result.location == [2, 77]


def test_rounding_of_the_dtype_passes_and_the_next_coarser_one_does_not() -> None:
    expected = random(64, 64)
    for dtype, coarser in (("float32", "float16"), ("float16", "float8_e4m3fn")):
        limit = allowed([dtype], Tolerance())
        assert not compare(expected.astype(dtype), expected, None, limit).fault
        import ml_dtypes

        rounded = expected.astype(getattr(ml_dtypes, coarser, coarser)).astype(np.float64)
        assert compare(rounded, expected, None, limit).fault == "wrong-result"


def test_a_badly_conditioned_sum_may_be_off_as_much_as_the_reference_is() -> None:
    terms = np.random.default_rng(3).standard_normal((32, 1 << 14)).astype(np.float32)
    terms -= terms.mean(axis=1, keepdims=True, dtype=np.float32)  # sums of almost nothing
    expected = terms.astype(np.float64).sum(axis=1, keepdims=True)
    native = terms.sum(axis=1, keepdims=True)
    other_order = terms.reshape(32, 128, 128).sum(axis=1).sum(axis=1, keepdims=True)
    assert compare(other_order, expected, None, LIMIT).fault == "wrong-result"
    assert not compare(other_order, expected, native, LIMIT).fault
    assert compare(other_order + 1e-2, expected, native, LIMIT).fault == "wrong-result"


def test_what_grows_along_a_row_may_be_off_at_its_end_as_much_as_the_reference_is() -> None:
    """A scan repeats the same rounding in each step, and nearly all of the error is in the last elements."""
    at = np.arange(7168.0)
    expected = np.exp(0.01 * at)[None, :]
    native, other, wrong = (expected * (1 + share * 2**-24 * at) for share in (0.6, 1.0, 4.0))
    assert compare(native, expected, native, LIMIT).element < 0.6
    assert not compare(other, expected, native, LIMIT).fault
    assert compare(wrong, expected, native, LIMIT).fault == "wrong-result"


@pytest.mark.parametrize(
    ("own_value", "reference_value", "fault"),
    [
        (np.nan, 1.0, "not-finite"), (np.inf, 1.0, "not-finite"), (1.0, np.nan, "missed-not-finite"),
        (1.0, np.inf, "missed-not-finite"), (-np.inf, np.inf, "missed-not-finite"), (np.nan, np.inf, "missed-not-finite"),
        (np.nan, np.nan, ""), (np.inf, np.inf, ""),
    ],
)  # fmt: skip
def test_nan_and_infinity_are_compared_by_place(own_value: float, reference_value: float, fault: str) -> None:
    expected = random(8, 8)
    actual = expected.copy()
    actual[3, 5], expected[3, 5] = own_value, reference_value
    result = compare(actual, expected, expected, LIMIT)
    assert result.fault == fault
    assert not fault or result.location == [3, 5]


def test_pieces_give_the_same_answer_as_one() -> None:
    expected = random(50, 40)
    actual = expected * (1 + 1e-6 * random(50, 40))
    at_once = compare(actual, expected, expected.astype(np.float32), LIMIT)
    actual, expected = np.tile(actual, (300, 1)), np.tile(expected, (300, 1))
    in_pieces = compare(actual, expected, expected.astype(np.float32), LIMIT)
    assert at_once.location is not None
    assert in_pieces.location is not None
    assert [in_pieces.location[0] % 50, in_pieces.location[1]] == at_once.location
    assert in_pieces.row == pytest.approx(at_once.row)
    assert in_pieces.whole == pytest.approx(at_once.whole)


def test_integers_must_be_equal() -> None:
    expected = np.arange(12).reshape(3, 4)
    assert not compare_exact(expected, expected).fault
    actual = expected.copy()
    actual[1, 2] = 0
    result = compare_exact(actual, expected)
    assert (result.fault, result.location) == ("wrong-result", [1, 2])
    assert compare_exact(np.array(True), np.array(False)).fault


def test_tolerances_follow_the_coarsest_dtype_unless_stated() -> None:
    assert coarsest(["float32", "int64", "bfloat16"]) == "bfloat16"
    assert coarsest(["int64"]) is None
    order = [
        allowed([d], Tolerance()).relative
        for d in ("float64", "float32", "float16", "bfloat16", "float8_e5m2")
    ]
    assert order == sorted(order)
    assert allowed(["float32"], Tolerance(1e-3, 1e-5)) == Allowed(1e-3, 1e-5, True)
    assert allowed(["int32"], Tolerance()).absolute == 0.0


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (2, 0, 3)])
def test_outputs_without_elements_are_equal(shape: tuple[int, ...]) -> None:
    nothing = np.zeros(shape, np.float32)
    assert not compare(nothing, nothing, nothing, LIMIT).fault


def test_a_row_below_what_the_dtype_holds_may_be_zero() -> None:
    """exp(-500) is 7e-218: a reference in float64 gives it, a kernel in float32 cannot, and its square is no float64."""
    expected = np.stack([np.linspace(1.0, 2.0, 8), np.full(8, 7e-218)])
    actual = expected.astype(np.float32)
    limit = allowed(["float32"], Tolerance())
    assert not actual[1].any()
    assert not compare(actual, expected, None, limit).fault
    assert compare(np.zeros_like(actual), expected, None, limit).fault
    assert compare(actual, expected + 1e-20 * (expected < 1), None, limit).fault
    half = allowed(["float16"], Tolerance())
    assert compare(np.zeros((1, 8), np.float16), np.full((1, 8), 1e-5), None, half).fault


@pytest.mark.parametrize("distribution", [name for name in OTHERS if name != "skewed"])
@given(array=finite)
@settings(max_examples=25, deadline=None)
def test_distributions_keep_what_they_must(distribution: str, array: Any) -> None:
    index = np.arange(-2, 2)
    (changed, scalar, same, inner), any_change = values_of(
        distribution, [array, 1e-5, index, [array, None]], 5
    )
    assert changed.dtype == array.dtype
    if distribution != "unequal axes":
        assert changed.shape == array.shape
    assert scalar == 1e-5
    assert same is index
    assert inner[1] is None
    if not (array < 0).any() and distribution != "other signs":
        assert not (changed < 0).any()
    if array.size == 1:
        assert not any_change
        assert changed is array


def test_distributions_do_what_they_say() -> None:
    array = random(14, 6).astype(np.float32)
    values = {name: values_of(name, [array], 5)[0][0] for name in OTHERS}
    [shuffled], _ = Shuffled(5).of([array])
    assert np.allclose(values["large"], 3 * array)
    assert np.allclose(values["small"], 0.01 * array)
    assert (values["rows"][::2] == values["rows"][::2, :1]).all()
    spread = values["rows"][[1, 5]]
    assert (abs(spread / spread.mean(1, keepdims=True) - 1) < 0.6).all()
    assert (spread != spread[:, :1]).any()
    assert (values["rows"][3::7] == 0).all()
    near = values_of("rows", [np.where(array == array[:, :1], 1e-6, array).astype(np.float32)], 5)[0][0]
    assert abs(np.delete(near, [3, 10], 0)).min() > 0.05
    assert set(np.unique(values["integers"])) <= {-2, -1, 0, 1, 2}
    assert not np.array_equal(shuffled, array)
    assert np.array_equal(np.sort(shuffled, axis=None), np.sort(array, axis=None))
    assert not np.array_equal(values_of("integers", [array], 6)[0][0], values["integers"])
    masked = np.where(array > 1, -np.inf, array)
    assert np.array_equal(np.isinf(values_of("large", [masked], 5)[0][0]), np.isinf(masked))


@pytest.mark.parametrize("distribution", ["large", "rows", "integers", "shuffled"])
def test_triangles_stay_triangles_unless_they_are_constant(distribution: str) -> None:
    drawn = [np.triu(random(6, 6)), np.tri(6), np.eye(6)]
    values, _ = Shuffled(5).of(drawn) if distribution == "shuffled" else values_of(distribution, drawn, 5)
    triangle, mask, identity = values
    assert not np.tril(triangle, -1).any()
    assert np.triu(triangle).any()
    if distribution in ("integers", "shuffled"):
        assert np.triu(mask, 1).any()
        assert (identity - np.diag(np.diag(identity))).any()


def test_plans() -> None:
    names = [case.name for case in plan_cases(CaseOptions())]
    others = [
        f"{name} {n + 1}" if VALUES[name].most > 1 else name
        for name in OTHERS
        for n in range(VALUES[name].most)
    ]
    assert names[:6] == ["original", "shape 1", "shape 2", "shape 3", "shape 4", "draw 2"]
    assert names[6 : 6 + len(others)] == others
    assert names[6 + len(others) :][:5] == ["smaller sizes", *(f"derived shape {n}" for n in (1, 2, 3, 4))]
    assert [c.name for c in plan_cases(CaseOptions(["original"], seeds=1, shapes=0))] == [
        "original",
        "smaller sizes",
    ]
    with pytest.raises(ValueError, match="sideways"):
        plan_cases(CaseOptions(["sideways"]))
