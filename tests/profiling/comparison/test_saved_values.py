"""What travels between the gate's processes arrives as it left; what cannot travel is refused."""

# ruff: noqa: E501 - tables, one case a line

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from accelopt_profiling.comparison.leaves import decode_bits, read_leaves
from accelopt_profiling.comparison.saved_values import (
    NotCarriedError,
    digest,
    load_values,
    read_index,
    save_values,
)

DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"]
numbers = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=5)
some_array = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
values = st.recursive(numbers | some_array, lambda inner: st.lists(inner, max_size=3), max_leaves=6)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()  # fmt: skip
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return type(one) is type(other) and one == other


@given(st.lists(values, max_size=4))
@settings(max_examples=60, deadline=None)
def test_values_come_back(tmp_path_factory: pytest.TempPathFactory, given_values: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("values") / "saved"
    save_values(folder, given_values)
    assert same(given_values, load_values(folder))
    assert not any(b"pickle" in file.read_bytes() for file in folder.iterdir())


@pytest.mark.triton
@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int64", "bool"]
)
@pytest.mark.parametrize(
    "layout", ["plain", "transposed", "strided", "expanded", "offset", "scalar", "empty"]
)
def test_tensors_keep_dtype_and_layout(dtype: str, layout: str, tmp_path: Path) -> None:
    import torch

    base = (torch.arange(48).reshape(6, 8) % 5).to(getattr(torch, dtype))
    tensor = {
        "plain": base, "transposed": base.T, "strided": base[::2, ::4], "expanded": base[:, :1].expand(6, 8),
        "offset": base[2:, 3:], "scalar": base[0, 0], "empty": base[:0],
    }[layout]  # fmt: skip
    save_values(tmp_path / "v", [tensor])
    (back,) = load_values(tmp_path / "v")
    assert back.dtype == tensor.dtype
    assert back.shape == tensor.shape
    assert back.stride() == tensor.stride()
    assert torch.equal(back.double(), tensor.double())
    (leaf,) = read_leaves(tmp_path / "v")
    assert leaf.dtype == dtype
    assert np.array_equal(leaf.values.astype(np.float64), tensor.double().numpy())


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
)
def test_narrow_floats_are_decoded_exactly(dtype: str) -> None:
    kind = getattr(ml_dtypes, dtype)
    bits = np.arange(1 << (8 * np.dtype(kind).itemsize), dtype=f"uint{8 * np.dtype(kind).itemsize}")
    with np.errstate(all="ignore"):
        expected = bits.view(kind).astype(np.float32)
    assert np.array_equal(decode_bits(bits, dtype), expected, equal_nan=True)


@pytest.mark.parametrize("value", [object(), print, np.array(["text"]), np.array([object()]), {1: 2}, {1, 2}])
def test_other_values_are_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(NotCarriedError, match="cannot be passed"):
        save_values(tmp_path / "v", [value])


@pytest.mark.parametrize(
    "index",
    [
        "{", '["text"]', "{}", '[{"array": {}}]', '[{"other": 1}]', '[{"tuple": [], "dict": []}]', '[{"array": {"file": "../../x.npy", "shape": [1], "dtype": "float32"}}]',
        '[{"array": {"file": "0.npy", "shape": [9], "dtype": "float32"}}]',
        '[{"array": {"file": "0.npy", "shape": [3], "dtype": "object"}}]',
        '[{"array": {"file": "0.npy", "shape": [3], "dtype": "complex128"}}]',
        '[{"array": {"file": "0.npy", "shape": [2], "strides": [5], "dtype": "float32"}}]',
        '[{"array": {"file": "0.npy", "shape": [2], "strides": [-1], "dtype": "float32"}}]',
        '[{"array": {"file": "f.npy", "shape": [3], "dtype": "float32"}}]',
        '[{"array": {"file": "p.npy", "shape": [2], "dtype": "float32"}}]',
    ],
)  # fmt: skip
def test_what_a_candidate_may_have_written_cannot_hurt(index: str, tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", np.zeros(12, np.uint8))
    np.save(tmp_path / "f.npy", np.zeros(3, np.float32))
    (tmp_path / "p.npy").write_bytes(b"\x80\x04K\x01.")
    (tmp_path / "values.json").write_text(index)
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_leaves(tmp_path)
    if index != '["text"]':  # which is a value, and no output
        with pytest.raises(ValueError, match="saved"):
            load_values(tmp_path)


def test_a_digest_sees_names_and_contents(tmp_path: Path) -> None:
    for name, array in (("a", [1.0]), ("b", [1.0]), ("c", [2.0])):
        save_values(tmp_path / name, [np.array(array)])
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")
    (tmp_path / "b" / "extra").write_text("")
    assert digest(tmp_path / "a") != digest(tmp_path / "b")
    assert json.loads((tmp_path / "a" / "values.json").read_text()) == read_index(tmp_path / "a")
