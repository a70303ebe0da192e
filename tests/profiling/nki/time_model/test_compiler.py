"""What the Beta 1 compiler is modelled to do: share values, load again what is too large, use PSUM, spill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.nki_current_source import run as run_current
from support.nki_source import FIRST_LINE, run

from accelopt_profiling.nki.time_model.estimate import estimate
from accelopt_profiling.nki.time_model.hardware import AS_WRITTEN, Compiler, Hardware, hardware
from accelopt_profiling.nki.time_model.schedule import Schedule, prepare, schedule

TRN1 = hardware("trn1")
SHARING = replace(AS_WRITTEN, shares_values=True)


def plan(
    body: str, *shapes: tuple[int, ...], compiler: Compiler | None = None, machine: Hardware = TRN1
) -> Schedule:
    inputs = [np.broadcast_to(np.zeros((), np.float32), shape) for shape in shapes]
    outcome = run(body, *inputs, mode="trace")
    assert outcome.fault is None, outcome.fault
    return schedule(prepare(outcome.trace.instructions, machine, compiler), machine)


TRANSPOSED = """
out = nl.ndarray((4, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
eye = nl.load(b[0:128, 0:128])
for n in nl.affine_range(4):
    x = nl.load(a[0:128, 0:128])
    turned = nl.copy({transpose})
    y = nl.load(b[0:128, 0:512])
    nl.store(out[n], nl.copy(nisa.nc_matmul(turned, y)))
return out
"""


@pytest.mark.parametrize(
    ("transpose", "products"),
    [
        ("nisa.nc_matmul(x, eye, is_transpose=True, is_moving_onezero=True)", 4 + 1),  # shared
        ("nisa.nc_matmul(x, eye)", 4 + 4),  # a product like any other is not known to be a transpose
    ],
)
def test_a_transpose_of_the_same_data_is_made_once(transpose: str, products: int) -> None:
    shared = plan(TRANSPOSED.format(transpose=transpose), (128, 128), (128, 512), compiler=SHARING)
    assert shared.instructions["TensorE"] == products
    assert shared.residency.reused_bytes > 0
    plain = plan(TRANSPOSED.format(transpose=transpose), (128, 128), (128, 512), compiler=AS_WRITTEN)
    assert plain.instructions["TensorE"] == 8
    assert plain.total >= shared.total


def test_transposes_inside_nl_matmul_are_not_shared() -> None:
    body = """
    out = nl.ndarray((4, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a[0:128, 0:128]), nl.load(b[0:128, 0:512])
    for n in nl.affine_range(4):
        nl.store(out[n], nl.copy(nl.matmul(x, y)))
    return out
    """
    assert plan(body, (128, 128), (128, 512), compiler=SHARING).instructions["TensorE"] == 8


def test_a_tile_that_is_written_again_is_not_shared() -> None:
    body = """
    out = nl.ndarray((2, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    for n in nl.affine_range(2):
        x = nl.ndarray((128, 512), a.dtype)
        x[...] = nl.load(a[0:128, 0:512])
        nl.store(out[0], x)
        x[...] = nl.load(a[128:256, 0:512])
        nl.store(out[n], x)
    return out
    """
    assert plan(body, (256, 512), compiler=SHARING).read_bytes == 4 * 128 * 512 * 4


SWEPT = """
out = nl.ndarray((8, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
kept = nl.ndarray(({tiles}, nl.par_dim(128), 1024), a.dtype)
for k in nl.affine_range({tiles}):
    kept[k] = nl.load(b[k * 128:k * 128 + 128, 0:1024])
for m in nl.affine_range(8):
    for _ in nl.affine_range(16):
        w = nl.load(a[m * 128:m * 128 + 128, 0:128])
        z = nl.exp(w)
    bank = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
    for k in nl.affine_range({tiles}):
        bank += nisa.nc_matmul(w, kept[k, nl.arange(128)[:, None], nl.arange(512)[None, :]])
    nl.store(out[m], nl.copy(bank))
return out
"""


@pytest.mark.parametrize(("tiles", "times"), [(8, 1), (56, 8)])
def test_loads_too_large_to_keep_are_loaded_again_in_every_sweep(tiles: int, times: int) -> None:
    """Only the half that is read comes back; once it fits, nothing does."""
    outcome = plan(SWEPT.format(tiles=tiles), (1024, 128), (tiles * 128, 1024))
    whole, weights = tiles * 128 * 1024 * 4, 1024 * 128 * 4
    again = outcome.read_bytes - whole - weights
    assert again == pytest.approx(whole / 2 * (times - (times == 1)), rel=0.15)
    assert outcome.residency.saved_bytes == 0


def test_scaled_operands_in_psum_make_vector_work_cheaper() -> None:
    body = """
    out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a[0:128, 0:512]), nl.load(b[0:128, 0:512])
    nl.store(out, nl.add(nl.multiply(x, 0.5), y))
    return out
    """
    line = FIRST_LINE + 2
    cycles = {on: (512 * (1 if on else 2) + TRN1.vector_overhead) / 1.12 for on in (True, False)}
    for on, ns in cycles.items():
        compiler = replace(AS_WRITTEN, psum_operands=on, scalar_first=True)
        outcome = plan(body, (128, 512), (128, 512), compiler=compiler)
        assert outcome.lines[line]["VectorE"] == pytest.approx(ns)


@pytest.mark.parametrize(("columns", "cost"), [(512, 1), (1024, 2)])
def test_a_broadcast_row_is_read_in_psum_where_it_fits_a_bank(columns: int, cost: int) -> None:
    body = f"""
    out = nl.ndarray((128, {columns}), dtype=a.dtype, buffer=nl.shared_hbm)
    x, row = nl.load(a), nl.load(b)
    nl.store(out, nisa.tensor_tensor(x, row.broadcast_to((128, {columns})), nl.multiply))
    return out
    """
    outcome = plan(body, (128, columns), (1, columns), compiler=replace(AS_WRITTEN, psum_operands=True))
    assert ("tensor_copy" in {step.opcode for step in outcome.residency.order}) is (cost == 2)
    (product,) = (s for s in outcome.residency.order if s.opcode == "tensor_tensor")
    assert outcome.lines[product.line]["VectorE"] >= cost * columns / TRN1.clocks["VectorE"]
    assert product.psum_inputs == (1 if cost == 1 else 0)


@pytest.mark.parametrize(
    ("rows", "columns", "times", "copied"),
    [
        (16, 512, 2, False),  # a bank is not kept until the next sweep
        (4, 1024, 1, True),
        (64, 1024, 2, True),  # more than there is room for
    ],
)
def test_broadcast_rows_are_kept_where_they_fit_and_else_made_again(
    rows: int, columns: int, times: int, copied: bool
) -> None:
    """Two sweeps over the same rows: nothing is spilled for them."""
    body = f"""
    out = nl.ndarray((2, {rows}, 128, {columns}), dtype=a.dtype, buffer=nl.shared_hbm)
    for n in nl.affine_range(2):
        x = nl.load(a[n])
        for i in nl.affine_range({rows}):
            row = nl.load(b[i]).broadcast_to((128, {columns}))
            nl.store(out[n, i], nisa.tensor_tensor(x, row, nl.multiply))
    return out
    """
    compiler = replace(TRN1.compiler, streams_loads=False)
    outcome = plan(body, (2, 128, columns), (rows, 1, columns), compiler=compiler)
    assert outcome.instructions["TensorE"] == times * rows * columns // 512
    assert ("tensor_copy" in {step.opcode for step in outcome.residency.order}) is copied
    assert outcome.residency.saved_bytes == 0


@pytest.mark.parametrize(("tiles", "products"), [(1, 1), (16, 16), (32, 64)])
def test_few_results_of_vector_work_are_kept(tiles: int, products: int) -> None:
    """Two sweeps over ``tiles`` products that are the same in both."""
    body = f"""
    out = nl.ndarray((2, {tiles}, 128, 16), dtype=a.dtype, buffer=nl.shared_hbm)
    for n in nl.affine_range(2):
        for i in nl.affine_range({tiles}):
            both = nisa.tensor_tensor(nl.load(a[i]), nl.load(b[i]), nl.multiply)
            nl.store(out[n, i], nisa.tensor_scalar(both, nl.add, 1.0))
    return out
    """
    outcome = plan(body, (tiles, 128, 16), (tiles, 128, 16), compiler=SHARING)
    vector_steps = [step for step in outcome.residency.order if step.opcode == "tensor_tensor"]
    assert len(vector_steps) == products


def test_vector_engine_waits_less_for_itself_than_for_others() -> None:
    body = """
    out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    for _ in range(8):
        x = nisa.tensor_tensor(x, x, nl.add)
    nl.store(out, x)
    return out
    """
    outcome = plan(body, (128, 512), compiler=AS_WRITTEN)
    slower = plan(
        body, (128, 512), compiler=AS_WRITTEN, machine=replace(TRN1, vector_result_ns=TRN1.semaphore_ns)
    )
    assert slower.total - outcome.total == pytest.approx(7 * (TRN1.semaphore_ns - TRN1.vector_result_ns))


def test_one_buffer_makes_loads_wait_for_the_work() -> None:
    body = """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(64):
        x = nl.load(a[i * 128:i * 128 + 128, 0:512])
        nl.store(out[i * 128:i * 128 + 128, 0:512], nl.exp(x))
    return out
    """
    one, two, many = (
        plan(body, (8192, 512), compiler=replace(TRN1.compiler, buffers=n)).total for n in (1, 2, 8)
    )
    assert one > 1.4 * two
    assert two >= many


def test_room_held_back_lets_transfers_run_ahead() -> None:
    body = """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    kept = nl.ndarray((128, nl.par_dim(128), 512), a.dtype)
    for i in nl.affine_range(128):
        kept[i] = nl.exp(nl.load(a[i * 128:i * 128 + 128, 0:512]))
    for i in nl.affine_range(128):
        nl.store(out[i * 128:i * 128 + 128, 0:512], nl.exp(kept[i]))
    return out
    """
    none, some = (
        plan(body, (16384, 512), compiler=replace(TRN1.compiler, reserve_bytes=reserve))
        for reserve in (0, 32 << 10)
    )
    assert none.residency.saved_bytes < some.residency.saved_bytes
    assert some.total < none.total


REPEATED = """
out = nl.ndarray((4, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
{kept}
for i in nl.affine_range(4):
    total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in nl.affine_range(64):
        total += nisa.nc_matmul({one}[:, 0:128], {one})
        total += nisa.nc_matmul({other}[:, 0:128], {other})
    nl.store(out[i], nl.copy(total))
return out
"""
KEPT = """
x = nl.ndarray((64, nl.par_dim(128), 512), dtype=a.dtype, buffer=nl.sbuf)
y = nl.ndarray((64, nl.par_dim(128), 512), dtype=a.dtype, buffer=nl.sbuf)
for k in nl.affine_range(64):
    x[k] = nl.load(a[k])
    y[k] = nl.load(b[k])
"""


@pytest.mark.parametrize(
    ("names", "again"),
    [
        ({"kept": "", "one": "nl.load(a[k])", "other": "nl.load(b[k])"}, False),
        ({"kept": KEPT, "one": "x[k]", "other": "y[k]"}, True),
    ],
)
def test_what_a_kernel_loads_for_each_use_is_no_spill(names: dict[str, str], again: bool) -> None:
    """256 KiB of operands do not stay in 192: loaded again they are, but nothing is written out; and where the kernel
    loads them for each use by itself, nothing is to be told."""
    outcome = plan(REPEATED.format(**names), (64, 128, 512), (64, 128, 512))
    residency = outcome.residency
    assert outcome.read_bytes > 2 * 64 * 128 * 512 * 4
    assert (residency.saved_bytes, residency.reloaded_bytes, residency.spilled) == (0, 0, {})
    assert bool(sum(residency.loaded_again.values())) == again


def test_of_equal_allocations_the_first_ones_leave() -> None:
    """The estimate of one trace must not depend on the hashes of names, which Python draws anew in each process."""
    size, tiles = 8192, 9  # 32 KiB per partition each, of 192 KiB
    body = [f"t{n} = nl.zeros((128, {size}), dtype=a.dtype, buffer=nl.sbuf)" for n in range(tiles)]
    body += [
        "for n in nl.affine_range(80):",
        "    nl.store(b, nl.load(a[:, 0:1]))",
    ]  # longer than the compiler looks ahead
    body += [f"nl.store(out[{n}], t{n})" for n in range(tiles)]
    head = (
        f"out = nl.ndarray(({tiles}, 128, {size}), dtype=a.dtype, buffer=nl.shared_hbm)\n"
        "b = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.shared_hbm)"
    )
    spilled = plan("\n".join([head, *body, "return out"]), (128, size)).residency.spilled
    # the first five have to leave; the first of them is needed first and stays after all
    assert sorted(spilled) == [FIRST_LINE + n for n in (3, 4, 5, 6)]


def test_a_kernel_gets_the_compiler_of_its_dialect() -> None:
    """A load made again is served from SBUF by the Beta 1 compiler, on whatever generation; today's keeps it."""
    beta1 = """
out = nl.ndarray((8, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
for i in nl.affine_range(8):
    nl.store(out[i], nl.exp(nl.load(a)))
return out
"""
    current = """
out = nl.ndarray((8, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
for i in nl.affine_range(8):
    tile = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    nisa.activation(dst=tile, op=nl.exp, data=tile)
    nisa.dma_copy(dst=out[i], src=tile)
return out
"""
    tile = np.broadcast_to(np.zeros((), np.float32), (128, 512))
    for name in ("trn1", "trn2", "trn3"):
        loads = {}
        for body, of_dialect in ((beta1, run), (current, run_current)):
            outcome = of_dialect(body, tile, mode="trace")
            assert outcome.fault is None, outcome.fault
            plan_of = estimate(outcome.trace, hardware(name)).schedule
            loads[outcome.trace.dialect] = plan_of.read_bytes // (128 * 512 * 4)
        assert loads == {"beta1": 1, "current": 8}, name


def test_a_row_loaded_over_another_is_still_shared() -> None:
    """A tile that each iteration overwrites is another value each time, so what was loaded before is found again."""
    body = """
out = nl.ndarray((6, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
tile = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
for i in range(6):
    nisa.dma_copy(src=a[(i % 3) * 128:(i % 3) * 128 + 128, :], dst=tile)
    nl.store(out[i], nl.exp(tile))
return out
"""
    sharing = replace(SHARING, rotates_overwritten=True)
    assert plan(body, (384, 512), compiler=sharing).read_bytes == 3 * 128 * 512 * 4


def test_a_second_buffer_for_all_comes_before_a_third_for_one() -> None:
    """Room for two buffers of each of two tiles: neither waits for the other's third."""
    body = """
out = nl.ndarray((16, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
for i in nl.affine_range(16):
    x = nl.load(a[i * 128:i * 128 + 128, :])
    nl.store(out[i], nl.exp(x))
return out
"""
    size = 512 * 4
    machine = replace(TRN1, sbuf_usable=4 * size)
    three, two = (
        plan(body, (2048, 512), compiler=replace(AS_WRITTEN, buffers=n), machine=machine).total
        for n in (3, 2)
    )
    assert three == pytest.approx(two)


#: Rows of ``b``, two products each, are broadcast in each iteration of a loop around them, or each in its own loop.
ROWS = """
out = nl.ndarray((128, 1024), dtype=a.dtype, buffer=nl.shared_hbm)
total = nl.zeros((128, 1024), nl.float32)
{loops}
        row = nl.broadcast_to(nl.load(b[{row}:{row} + 1, 0:1024]), shape=(128, 1024))
        total += nl.multiply(nl.load(a[0:128, {part} * 1024:{part} * 1024 + 1024]), row)
nl.store(out, total)
return out
"""


@pytest.mark.parametrize(
    ("loops", "row", "part", "products"),
    [
        ("for i in nl.affine_range(4):\n    for r in nl.affine_range(2):", "r", "i", 16),
        ("for r in nl.affine_range(2):\n    for i in nl.affine_range(4):", "r", "i", 4),
    ],
)
def test_on_trn2_a_value_is_kept_where_the_innermost_loop_does_not_change_it(
    loops: str, row: str, part: str, products: int
) -> None:
    shapes = [np.broadcast_to(np.zeros((), np.float32), shape) for shape in ((128, 4096), (2, 1024))]
    outcome = run(ROWS.format(loops=loops, row=row, part=part), *shapes, mode="trace")
    assert outcome.fault is None, outcome.fault
    made = {}
    for target in ("trn1", "trn2"):
        machine = hardware(target)
        order = prepare(outcome.trace.instructions, machine, machine.compiler_of("beta1")).residency.order
        made[target] = sum(step.engine == "TensorE" for step in order)
    assert made == {"trn1": 4, "trn2": products}


def test_on_trn2_a_transposed_load_is_a_load_and_transposes_on_tensor_engine() -> None:
    body = """
out = nl.ndarray((128, 256), dtype=a.dtype, buffer=nl.shared_hbm)
nl.store(out, nl.load_transpose2d(a))
return out
"""
    outcome = run(body, np.broadcast_to(np.zeros((), np.float32), (256, 128)), mode="trace")
    assert outcome.fault is None, outcome.fault
    machine = hardware("trn2")
    order = prepare(outcome.trace.instructions, machine, machine.compiler_of("beta1")).residency.order
    assert [(step.opcode, step.engine) for step in order] == [
        ("load", "DMA"),
        *[("nc_matmul", "TensorE"), ("tensor_copy", "ScalarE")] * 2,
        ("store", "DMA"),
    ]
    assert order[0].descriptors == 256
    trn1 = hardware("trn1")
    assert len(prepare(outcome.trace.instructions, trn1).residency.order) == 2
