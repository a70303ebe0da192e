"""Kernels that no function of their file launches: shapes, strides and the grid from names and the docstring."""

from __future__ import annotations

import ast

from accelopt_profiling.problems.inference.arguments import InferredCall
from accelopt_profiling.problems.inference.entries import entry_candidates
from accelopt_profiling.problems.inference.guess import guess_call
from accelopt_profiling.problems.inference.strides import stride_values, strides_of
from accelopt_profiling.problems.inference.usage import function_uses

ROWS = '''
@triton.jit
def k(input_pointer, mean_pointer, batch_dim, feat_dim, input_batch_stride, input_feat_stride, BLOCK: tl.constexpr):
    """Normalise.

    Args:
        input_pointer: Rows of the shape [batch_dim, feat_dim].
        mean_pointer: Means of the shape [feat_dim].
    """
    column = tl.program_id(0)
    row = tl.arange(0, BLOCK)
    at = input_pointer + input_feat_stride * column + input_batch_stride * row
    mean = tl.load(column + mean_pointer)
    tl.store(at, tl.load(at, mask=row < batch_dim) - mean, mask=row < batch_dim)
'''

PRODUCT = """
@triton.jit
def k(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
      BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(axis=0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    m = (pid // tiles_n) * BM + tl.arange(0, BM)
    n = (pid % tiles_n) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    steps = tl.cdiv(K, BK)
    for step in range(steps):
        i = step * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * stride_am + i[None, :] * stride_ak)
        b = tl.load(b_ptr + i[:, None] * stride_bk + n[None, :] * stride_bn)
        total += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn, total)
"""


def guessed(text: str, imported: dict[str, ast.FunctionDef] | None = None) -> InferredCall:
    tree = ast.parse(text)
    return guess_call(text, entry_candidates(tree, ["k"])[0], function_uses(tree, {"k"}, imported))


def values(call: InferredCall) -> dict[str, object]:
    return {a.name: a.dims if a.kind == "tensor" else a.value for a in call.arguments}


def test_sizes_of_the_docstring_are_the_arguments_of_their_names() -> None:
    call = guessed(ROWS)
    assert values(call) == {
        "input_pointer": ["batch_dim", "feat_dim"],
        "mean_pointer": ["feat_dim"],
        "batch_dim": "batch_dim",
        "feat_dim": "feat_dim",
        "input_batch_stride": "feat_dim",
        "input_feat_stride": "1",
        "BLOCK": "64",
    }
    assert call.grid == ["input_pointer.shape[1]"], (
        "the program's number is multiplied by the stride of columns"
    )


def test_a_documented_vector_of_all_elements_is_as_large_as_a_matrix() -> None:
    text = (
        "@triton.jit\ndef k(x_ptr, size, BLOCK: tl.constexpr):\n"
        ' """Scale.\n\n Args:\n  x_ptr: Numbers of shape [size].\n """\n'
        " at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        " tl.store(x_ptr + at, 2 * tl.load(x_ptr + at, mask=at < size), mask=at < size)\n"
    )
    arguments = values(guessed(text))
    assert (arguments["x_ptr"], arguments["size"]) == (["rows", "columns"], "rows * columns")


def test_strides_name_the_dimensions_of_tensors() -> None:
    call = guessed(PRODUCT)
    shapes = {n: v for n, v in values(call).items() if isinstance(v, list)}
    assert shapes == {"a_ptr": ["M", "K"], "b_ptr": ["K", "N"], "c_ptr": ["M", "N"]}
    strides = {n: v for n, v in values(call).items() if n.startswith("stride")}
    assert list(strides.values()) == ["K", "1", "N", "1", "N", "1"]


def test_programs_of_grouped_tiles_are_as_many_as_the_tiles_without_those_of_loops() -> None:
    assert guessed(PRODUCT).grid == ["cdiv(M, BM) * cdiv(N, BN)"]


def test_a_stride_belongs_to_the_tensor_that_its_name_begins_with() -> None:
    names = ["x_stride_row", "stride_xb", "output_grad_feat_stride", "output_feat_stride", "stride_batch"]
    assert strides_of(names, ["x_ptr", "b", "output_pointer", "output_grad_pointer"]) == {
        "x_ptr": {"x_stride_row": "row", "stride_xb": "b"},
        "output_grad_pointer": {"output_grad_feat_stride": "feat"},
        "output_pointer": {"output_feat_stride": "feat"},
        "stride_batc": {"stride_batch": ""},
    }


def test_strides_are_those_of_a_contiguous_tensor() -> None:
    of_four = {"sb": "", "sh": "", "sm": "", "sk": ""}
    assert stride_values(of_four, ["B", "H", "2 * M", "K"]) == {
        "sb": "H * (2 * M) * K", "sh": "(2 * M) * K", "sm": "K", "sk": "1"
    }  # fmt: skip
    assert stride_values({"row_stride": ""}, ["rows", "columns"]) == {"row_stride": "columns"}
    assert stride_values({"x_stride_col": ""}, ["rows", "columns"]) == {"x_stride_col": "1"}


def test_steps_of_a_convolution_are_no_strides_of_a_tensor() -> None:
    text = ROWS.replace("BLOCK: tl", "stride_height: tl.constexpr, stride_w: tl.constexpr, BLOCK: tl")
    assert {values(guessed(text))[name] for name in ("stride_height", "stride_w")} == {"1"}


def test_a_flag_is_what_an_imported_function_compares_it_with() -> None:
    helper = ast.parse("def act(x, kind: tl.constexpr):\n if kind == 'relu':\n  return x\n return -x").body[0]
    assert isinstance(helper, ast.FunctionDef)
    text = ROWS.replace("BLOCK: tl", "act_func: tl.constexpr, BLOCK: tl").replace(
        "- mean,", "- act(mean, act_func),"
    )
    assert values(guessed(text, {"act": helper}))["act_func"] == "'relu'"
    assert values(guessed(text))["act_func"] != "'relu'"


def test_many_sizes_stay_small() -> None:
    call = InferredCall("k")
    for number in range(12):
        call.add_size(f"n{number}", 32)
    assert len(set(call.sizes.values())) == 12
    assert max(call.sizes.values()) <= 14 * 32
