"""Kernels run as they would on a device: each against PyTorch, in the emulation that runs every program."""

from __future__ import annotations

import re

import pytest
import torch
import triton
import triton.language as tl
from support import triton_kernels as kernels

from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.capture.session import OutOfBoundsError
from accelopt_profiling.triton.interpreter.arithmetic import UnsupportedOperationError
from accelopt_profiling.triton.interpreter.compiler_hints import FalseHintError

pytestmark = pytest.mark.triton


@pytest.fixture(autouse=True)
def device():
    with emulated("h100", "execute") as session:
        torch.manual_seed(0)
        yield session


def draw(*shape, dtype=torch.float32):
    return torch.randn(shape, device="cuda").to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64])
def test_elementwise_arithmetic_equals_torch_bit_for_bit(dtype):
    x, y = (draw(1000) * 10).to(dtype), (draw(1000) * 10).to(dtype)
    out = torch.empty_like(x)
    kernels.add[(4,)](x, y, out, 1000, B=256)
    assert torch.equal(out, x + y)


@pytest.mark.parametrize("target", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_casts_round_as_torch_does(target):
    x = torch.cat([draw(4000), draw(96) * 1e-3])
    out = torch.empty_like(x, dtype=target)
    kernels.convert[(16,)](x, out, 4096, B=256)
    assert torch.equal(out.float(), x.to(target).float())


def test_functions_that_are_members_of_values():
    x, out = draw(128), torch.empty(3, device="cuda")
    kernels.members[(1,)](x, out, n=128)
    torch.testing.assert_close(out.cpu(), torch.stack([x.sum(), x.max(), torch.tensor(1.0)]).cpu())


def test_python_float_arguments_are_tensors():
    x = draw(100, dtype=torch.bfloat16)
    out = torch.empty_like(x)
    kernels.scaled_rms[(1,)](x, out, 100, 1e-6, B=128)
    expected = x.float() * torch.rsqrt((x.float() ** 2).mean() + 1e-6)
    assert torch.allclose(out.float(), expected, rtol=1e-2)


def test_device_library_functions():
    x = draw(100)
    out = torch.empty_like(x)
    kernels.device_functions[(1,)](x, out, 100, B=128)
    assert torch.allclose(out, torch.tanh(x) + torch.erf(x) + x.abs(), atol=1e-5)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
)
def test_dot_multiplies_what_the_types_hold(dtype):
    a, b = draw(16, 32).to(dtype), draw(32, 16).to(dtype)
    out = kernels.poisoned(16, 16)
    kernels.product[(1,)](a, b, out, 16, 16, 32)
    assert torch.allclose(out, a.float() @ b.float(), atol=1e-5)


def test_integer_dot():
    a = torch.randint(-100, 100, (16, 32), dtype=torch.int8, device="cuda")
    b = torch.randint(-100, 100, (32, 16), dtype=torch.int8, device="cuda")
    out = kernels.poisoned(16, 16, dtype=torch.int32)

    kernels.integer_product[(1,)](a, b, out, 16, 16, 32)
    assert torch.equal(out, a.int() @ b.int())


def test_device_functions_of_device_functions():
    x = draw(64)
    out = torch.empty_like(x)
    kernels.nested[(1,)](x, out)
    assert torch.equal(out, 2 * x * x)


def test_language_functions_imported_by_name():
    x = draw(64)
    out = torch.empty_like(x)
    kernels.imported_names[(2,)](x, out, B=32)
    assert torch.equal(out, 2 * x)


def test_kernel_that_closes_over_a_constant():
    x = draw(32)
    out = torch.empty_like(x)
    kernels.closed_over(3.0)[(1,)](x, out)
    assert torch.equal(out, 3 * x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_reductions_and_scans(dtype):
    x = torch.randint(-50, 50, (128,), device="cuda").to(dtype)
    x[70] = x[90] = 99
    best, odd = kernels.poisoned(1, dtype=dtype), kernels.poisoned(1, dtype=dtype)
    where = kernels.poisoned(1, dtype=torch.int32)
    running, backwards = torch.empty_like(x), torch.empty_like(x)
    kernels.reductions[(1,)](x, best, where, odd, running, backwards, B=128)
    assert best.item() == 99
    assert where.item() == 70
    assert odd.item() == 99
    assert torch.equal(backwards[:71], torch.full_like(backwards[:71], 99))
    if dtype == torch.float32:
        assert torch.equal(running, torch.cumsum(x, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_atomic_add(dtype):
    x = torch.ones(1024, device="cuda", dtype=dtype)
    total = torch.zeros(1, device="cuda", dtype=dtype)
    kernels.accumulate[(16,)](x, total, B=64)
    assert total.item() == 1024


def test_block_pointers_check_their_bounds():
    x = draw(10, 50)
    out = torch.empty_like(x)
    kernels.block_pointers[(3,)](x, out, 10, 50, TM=4, TN=16)
    assert torch.equal(out, x + 1)


def test_tensor_descriptors():
    x = draw(10, 64)
    out = torch.empty_like(x)
    kernels.descriptors[(3,)](x, out, 10, 64, TM=4, TN=64)
    assert torch.equal(out, 2 * x)


@pytest.mark.parametrize("negate", [True, False])
def test_flags_and_static_ranges(negate):
    x = draw(20)
    out = torch.empty_like(x)
    kernels.flags[(1,)](x, out, 20, True, negate, B=32)
    assert torch.allclose(out, (x + 13) * (-1 if negate else 1))


def test_autotuned_and_heuristic_kernels():
    x = draw(1000)
    for kernel, grid in (
        (kernels.tuned, lambda meta: (triton.cdiv(1000, meta["B"]),)),
        (kernels.guessed, (1,)),
    ):
        out = torch.empty_like(x)
        kernel[grid](x, out, 1000)
        assert torch.equal(out, 2 * x)


def test_inline_assembly_is_named_as_unsupported():
    x = torch.arange(32, dtype=torch.int32, device="cuda")
    with pytest.raises(UnsupportedOperationError, match="assembly"):
        kernels.assembly[(1,)](x, torch.empty_like(x), B=32)


def test_an_error_in_a_kernel_is_raised_from_its_launch():
    x = draw(32)
    with pytest.raises(AssertionError, match="B is too large"):
        kernels.raises[(1,)](x, torch.empty_like(x), B=32)


def test_out_of_bounds_is_an_error_and_never_a_crash():
    x, out = draw(100), kernels.poisoned(100)
    with pytest.raises(OutOfBoundsError, match=r"reads outside x: element 100 of 100 in program \(0, 0, 0\)"):
        kernels.reads_past_end[(1,)](x, out, 100, B=128)
    with pytest.raises(OutOfBoundsError, match="writes outside out: element -3 of 32"):
        kernels.writes_before_start[(1,)](kernels.poisoned(32, dtype=torch.int32), B=32)


def test_language_is_itself_again_after_a_launch():
    before = (tl.load, tl.core.reduce, tl.tensor.__add__, triton.runtime.jit.JITFunction.__call__)
    x = draw(64)
    kernels.nested[(1,)](x, torch.empty_like(x))
    assert before == (tl.load, tl.core.reduce, tl.tensor.__add__, triton.runtime.jit.JITFunction.__call__)
    assert "__index__" not in vars(tl.tensor)


@pytest.mark.parametrize("limit", [None, 0.5])
def test_logical_operators_work_element_by_element(limit):
    x, out = draw(5, 7), kernels.poisoned(5, 7)
    with emulated("h100", "execute"):
        kernels.logic[(1,)](x, out, 5, 7, LIMIT=limit, B=8)
    first = (torch.arange(5) == 0)[:, None]
    expected = x if limit is None else torch.where((x >= limit) & (x > 0) | first, x, -1.0)
    assert torch.equal(out, expected)


@pytest.mark.parametrize(
    ("n", "k", "reason"),
    [
        (32, 16, ""),
        (24, 16, "multiple_of(16): 24 is no multiple"),
        (32, 20, "max_constancy(16): elements 16 to 31 differ"),
        (0, 16, "tl.assume"),
    ],
)
def test_false_hints_to_the_compiler_are_errors(n, k, reason):
    out = torch.zeros(200, dtype=torch.int32, device="cuda")
    if not reason:
        kernels.hinted[(2,)](out, n, k, EQUAL=16, B=32)
        return
    with pytest.raises(FalseHintError, match=re.escape(reason)):
        kernels.hinted[(2,)](out, n, k, EQUAL=16, B=32)
