"""Values made while interpreting have the shapes that Triton gives them, and refuse what Triton refuses."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("triton")

import triton.language as tl
from triton.runtime import interpreter as stock

from accelopt_profiling.triton.interpreter.language import BlockTypes

SHAPES: list[Any] = [[1], [8], [4, 16], [tl.constexpr(2), 4], tl.tuple([8, 8, 1])]
REFUSED: list[Any] = [[], [3], [2.0], [tl.constexpr(2.0)], [4, "x"], 8]
DTYPES = [tl.float32, tl.bfloat16, tl.int1, tl.float8e5, tl.pointer_type(tl.float16)]


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, value in BlockTypes().patches():
        monkeypatch.setattr(owner, name, value)


def described(shape: Any, dtype: Any) -> list[Any]:
    block = tl.block_type(dtype, shape)
    tensor, scalar = tl.tensor("handle", block), tl.tensor("handle", dtype)
    return [
        str(block), list(block.shape), block.numel, block.scalar, str(tensor), tensor.numel.value, tensor.dtype,
        [size.value for size in tensor.shape], [str(size) for size in tensor.shape], list(scalar.shape),
        scalar.numel.value, stock._get_np_dtype(block), stock._get_np_dtype(dtype),
    ]  # fmt: skip


CASES = [(shape, dtype) for shape in SHAPES for dtype in DTYPES]
EXPECTED = [described(shape, dtype) for shape, dtype in CASES]


def test_values_are_tritons(patched: None) -> None:
    for _ in range(2):  # made, and known already
        assert [described(shape, dtype) for shape, dtype in CASES] == EXPECTED


@pytest.mark.parametrize("shape", REFUSED, ids=str)
def test_refuses_what_triton_refuses(shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Exception) as stock_error:
        tl.block_type(tl.float32, shape)
    for owner, name, value in BlockTypes().patches():
        monkeypatch.setattr(owner, name, value)
    tl.block_type(tl.float32, [2])  # known: 2.0 must not pass for it
    with pytest.raises(stock_error.type):
        tl.block_type(tl.float32, shape)


def test_a_type_from_before_gives_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    early = tl.block_type(tl.float32, [4])
    for owner, name, value in BlockTypes().patches():
        monkeypatch.setattr(owner, name, value)
    assert str(tl.tensor("handle", early)) == "fp32[constexpr[4]]"
