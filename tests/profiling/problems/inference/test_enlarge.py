"""A call that runs gets the sizes that such kernels have in use."""

from __future__ import annotations

from accelopt_profiling.problems.inference.arguments import InferredArgument, InferredCall
from accelopt_profiling.problems.inference.infer_step import MOST_TRIED, elements, enlarged_calls, made_small


def call(sizes: dict[str, int], *dims: list[str]) -> InferredCall:
    tensors = [InferredArgument(f"x{n}", "tensor", own) for n, own in enumerate(dims)]
    return InferredCall("f", tensors, sizes)


def test_rows_and_columns_grow_together_or_apart() -> None:
    small = call({"rows": 512, "columns": 1024}, ["rows", "columns"], ["columns"])
    assert [c.sizes for c in enlarged_calls(small)] == [
        {"rows": 4096, "columns": 4096}, {"rows": 4096, "columns": 1024}, {"rows": 512, "columns": 4096},
    ]  # fmt: skip


def test_a_product_is_a_square_one() -> None:
    product = call({"M": 512, "N": 1024, "K": 64}, ["M", "K"], ["K", "N"])
    assert next(enlarged_calls(product)).sizes == {"M": 2048, "N": 2048, "K": 2048}


def test_rows_and_columns_are_as_large_as_they_are_whatever_their_names() -> None:
    short = call({"B": 4, "D": 64}, ["B", "D"], ["D"])
    assert next(enlarged_calls(short)).sizes == {"B": 4096, "D": 4096}
    heads = call({"T": 512, "H": 8, "D": 64}, ["T", "D"], ["T", "H", "D"])
    assert next(enlarged_calls(heads)).sizes == {"T": 2048, "H": 32, "D": 128}


def test_a_batch_of_rows_is_as_large_as_rows_are() -> None:
    rows = call({"B": 4, "hidden": 1024}, ["B", "hidden"], ["hidden"])
    assert next(enlarged_calls(rows)).sizes == {"B": 4096, "hidden": 4096}
    images = call({"B": 4, "hidden": 1024}, ["B", "hidden"], ["B", "hidden", "hidden"])
    assert next(enlarged_calls(images)).sizes == {"B": 8, "hidden": 4096}


def test_what_does_not_fit_or_change_is_left_out() -> None:
    huge = call({"rows": 1 << 20, "columns": 1024}, ["rows", "columns"])
    assert [c.sizes for c in enlarged_calls(huge)] == []
    assert list(enlarged_calls(call({"x": 32}, ["x"]))) == []


def test_a_guessed_call_of_many_dimensions_is_made_small_enough_to_try() -> None:
    sizes = {"n": 64, "c": 1024, "h": 32, "w": 128, "k": 3}
    tried = made_small(call(dict(sizes), ["n", "c", "h", "w"], ["c", "k", "k"]))
    assert MOST_TRIED // 4 < elements(tried) <= MOST_TRIED
    assert len(set(tried.sizes.values())) == 5
    assert tried.sizes["k"] == 3
    assert made_small(call({"n": 64, "c": 1024}, ["n", "c"])).sizes == {"n": 64, "c": 1024}
