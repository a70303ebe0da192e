"""Beta 1's instructions that search, select, gather and accumulate, and arguments that a kernel writes to."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from support.nki_current_source import TRN2
from support.nki_source import HEAD, run

from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.install import emulated

RNG = np.random.default_rng(3)
A = RNG.permutation(64 * 32).reshape(64, 32).astype(np.float32)
COLUMN = RNG.uniform(0.5, 2.0, (64, 1)).astype(np.float32)
TOP = -np.sort(-A, axis=1)[:, :8]
PLACES = np.argsort(-A, axis=1)[:, :8]
REPLACED = A.copy()
np.put_along_axis(REPLACED, PLACES, 0, 1)
LEAST = np.finfo(np.float32).min
IDS = np.array([[0, 1, 1, 2, 2, 0]], np.float32)

#: An expression on the tiles a (64 x 32) and c (64 x 1), and what it means.
EXPRESSIONS = {
    "nisa.max8(src=a)": TOP,
    "nisa.nc_find_index8(data=a, vals=nisa.max8(src=a))": PLACES,
    "nisa.nc_match_replace8(data=a, vals=nisa.max8(src=a), imm=0.0)": REPLACED,
    "nisa.tensor_partition_reduce(np.add, a)": A.sum(0, keepdims=True),
    "nisa.dma_transpose(a)": A.T,
    "nl.gather_flattened(data=a, indices=nisa.iota(0 * nl.arange(64)[:, None] + 3, np.int32))": A[:, 3:4],
    "nisa.range_select(on_true_tile=a, comp_op0=np.greater_equal, comp_op1=np.less, bound0=c, bound1=9.0)":
        np.where((np.arange(32) >= COLUMN) & (np.arange(32) < 9), A, LEAST),
    "nisa.dropout(a, prob=0.0)": A,
    "nl.copy(a[:, 3][:, 0])": A[:, 3:4],
    "nisa.sequence_bounds(segment_ids=nl.load(b))":
        np.array([[[6, 1, 1, 3, 3, 6], [-1, 3, 3, 5, 5, -1]]], np.float32),
    "nisa.local_gather(a, nisa.iota(0 * nl.arange(64)[:, None] + 2, np.int32), 2)":
        np.repeat(A[:, None, 2:4], 16, axis=1)[:, None],
}  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_instruction_means_what_numpy_says(expression: str) -> None:
    body = f"""
    a, c = nl.load(a), nl.load(c)
    result = {expression}
    out = nl.ndarray(result.shape, dtype=np.float32, buffer=nl.shared_hbm)
    nl.store(out, result)
    return out
    """
    outcome = run(body, A, IDS, COLUMN, limits=TRN2)
    assert outcome.fault is None, outcome.fault
    np.testing.assert_allclose(outcome.result, EXPRESSIONS[expression], rtol=1e-5)
    assert run(body, A, IDS, COLUMN, mode="trace", limits=TRN2).result.shape == outcome.result.shape


#: An expression on the tile a (64 x 32) with a mask that leaves its first rows, and what it means of these.
MASKED = {
    "nisa.max8(src=a, mask=rows)": lambda a: -np.sort(-a, axis=1)[:, :8],
    "nisa.tensor_reduce(np.add, a, axis=1, mask=rows)": lambda a: a.sum(1, keepdims=True),
    "nl.max(a, axis=1, mask=rows)": lambda a: a.max(1, keepdims=True),
    "nisa.nc_match_replace8(data=a, vals=a[:, 0:8], imm=0.0, mask=rows)":
        lambda a: np.concatenate([0 * a[:, :8], a[:, 8:]], axis=1),
    "nisa.bn_aggr(nisa.bn_stats(a), mask=rows2)": lambda a: np.stack([a.mean(1), a.var(1)], axis=1),
    "nisa.bn_stats(a, mask=rows)[:, 1:2]": lambda a: a[:, ::2].mean(1, keepdims=True),
    "nisa.affine_select(j < 5, a, 7.0, mask=rows)": lambda a: np.where(np.arange(32) < 5, a, 7),
    "nisa.activation(nl.copy, a, mask=rows)": lambda a: a,
}  # fmt: skip


@pytest.mark.parametrize("expression", MASKED)
def test_a_mask_leaves_the_rows_of_an_instruction_that_it_names(expression: str) -> None:
    body = f"""
    i, j = nl.mgrid[0:64, 0:32]
    rows, rows2 = i < 40, nl.arange(64)[:, None] < 40
    a = nl.load(a)
    result = {expression}
    out = nl.ndarray((40, result.shape[1]), dtype=np.float32, buffer=nl.shared_hbm)
    nl.store(out, result[0:40, :])
    return out
    """
    outcome = run(body, A)
    assert (outcome.fault, outcome.findings) == (None, [])
    np.testing.assert_allclose(outcome.result, MASKED[expression](A[:40]), rtol=1e-5)


@pytest.mark.parametrize("engine", ["tensor", "vector"])
def test_a_transpose_takes_the_rows_and_columns_that_a_mask_leaves(engine: str) -> None:
    body = f"""
    i, j = nl.mgrid[0:64, 0:32]
    turned = nisa.nc_transpose(nl.load(a), mask=(i < 40) & (j < 20), engine=nisa.{engine}_engine)
    out = nl.ndarray((20, 40), dtype=np.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.copy(turned[0:20, 0:40]))
    return out
    """
    np.testing.assert_array_equal(run(body, A).result, A[:40, :20].T)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("nisa.reduce_cmd.reset_reduce", np.cumsum(A + 1, axis=1)),
        ("nisa.reduce_cmd.load_reduce", np.cumsum(A + 1, axis=1) + 5),
    ],
)
def test_a_cumulative_instruction_starts_where_its_command_says(command: str, expected: np.ndarray) -> None:
    body = f"""
    out = nl.ndarray((64, 32), dtype=np.float32, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.ndarray((64, 32), dtype=np.float32)
    nisa.tensor_scalar_cumulative(src=x, dst=y, op0=nl.add, op1=nl.add, imm0=1.0, imm1=5.0, reduce_cmd={command})
    nl.store(out, y)
    return out
    """
    np.testing.assert_allclose(run(body, A).result, expected, rtol=1e-4)


def test_a_tile_of_indices_gathers_rows_and_a_transfer_may_skip_those_beyond_the_end() -> None:
    body = """
    out = nl.ndarray((4, 32), dtype=np.float32, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:4, 0:32]
    rows = nisa.iota({step} * nl.arange(4)[:, None], dtype=np.int32)
    tile = nisa.memset(shape=(4, 32), value=-1, dtype=np.float32)
    nisa.dma_copy(src=a[rows, j], dst=tile[i, j], oob_mode=nisa.oob_mode.{mode})
    nl.store(out, tile)
    return out
    """
    gathered = run(body.format(step=2, mode="error"), A)
    np.testing.assert_array_equal(gathered.result, A[[0, 2, 4, 6]])
    skipped = run(body.format(step=30, mode="skip"), A)
    np.testing.assert_array_equal(skipped.result, np.concatenate([A[[0, 30, 60]], np.full((1, 32), -1)]))
    assert run(body.format(step=30, mode="error"), A).fault.code == "out-of-bounds"


def test_a_tile_on_the_chip_keeps_its_values_when_it_is_returned() -> None:
    outcome = run("return nl.copy(nl.load(a)), nl.load(c)", A, A, COLUMN)
    np.testing.assert_array_equal(outcome.result[0], A)
    np.testing.assert_array_equal(outcome.result[1], COLUMN)


@pytest.mark.parametrize("decorator", ["nki.trace", "nki.baremetal()", "nki.benchmark(warmup=1, iters=1)"])
def test_kernels_of_older_decorators_write_to_their_arguments(decorator: str) -> None:
    head = HEAD.format(arguments="a, b").replace("@nki.jit", f"@{decorator}")
    space: dict[str, object] = {}
    with emulated():
        exec(head + "    nl.store(b, nl.load(a))\n", space)  # noqa: S102
        b = np.zeros_like(A)
        space["kernel"](A, b)  # type: ignore[operator]
        np.testing.assert_array_equal(b, A)


def test_a_kernel_that_returns_nothing_writes_to_its_arguments() -> None:
    written = np.zeros_like(A)
    assert run("nl.store(b, nl.load(a))", A, written).fault is None
    np.testing.assert_array_equal(written, A)
    returned = run("nl.store(b, nl.load(a))\nreturn nl.load(a)", A, written)
    assert returned.fault is not None


def test_sizes_and_choices_are_known_at_the_top_of_a_file() -> None:
    with emulated():
        import neuronxcc.nki.isa as nisa
        import neuronxcc.nki.language as nl
        from neuronxcc.nki.isa.constants import dge_mode

        assert nl.tile_size.pmax == 128
        assert dge_mode is nisa.dge_mode
        assert nisa.get_nc_version() >= nisa.nc_version.gen2
        assert nl.spmd_dim(nl.nc(2), 3) == 2 * nl.nc(3) == 6


def test_the_first_product_of_a_psum_tile_that_nothing_wrote_overwrites_it() -> None:
    body = """
    out = nl.ndarray((32, 32), dtype=np.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((nl.par_dim(32), 32), dtype=np.float32, buffer=nl.psum)
    x = nl.load(a)
    for k in nl.affine_range(2):
        total[...] += nisa.nc_matmul(x[32 * k:32 * k + 32, :], x[32 * k:32 * k + 32, :])
    nl.store(out, nl.copy(total))
    return out
    """
    small = A / 2048
    outcome = run(body, small)
    assert outcome.fault is None
    assert outcome.findings == []
    np.testing.assert_allclose(outcome.result, small.T @ small, rtol=1e-4)


def test_a_missing_name_of_the_sdk_faults_where_it_is_used() -> None:
    with emulated():
        import nki.language as nl
        import torch_xla.core.xla_model as xm
        from neuronxcc.nki._private_kernels.attention import flash_fwd
        from nki.collectives import ReplicaGroup

        assert ReplicaGroup != nl.float8_e4m3fn_x4
        assert {nl.float8_e4m3fn_x4: 1}
        assert callable(xm.xla_device)
        with pytest.raises(KernelFaultError, match="flash_fwd is not emulated"):
            flash_fwd(1)
    assert "torch_xla" not in sys.modules
