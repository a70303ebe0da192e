"""The time model: documented costs, honest bookkeeping, and the right order of two versions of one kernel."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import numpy as np
import pytest
from support.nki_current_source import run as run_current
from support.nki_source import FIRST_LINE, run

from accelopt_profiling.nki.data.instruction import BlockInfo, Trace, TracedInstruction
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.estimate import TimeEstimate, estimate
from accelopt_profiling.nki.time_model.hardware import AS_WRITTEN, Compiler, hardware
from accelopt_profiling.nki.time_model.schedule import _Lane
from accelopt_profiling.nki.time_model.step import dma_ns, engine_ns
from accelopt_profiling.targets.target import UnknownTargetError

TARGETS = ("trn1", "trn2", "trn3")
TRN1 = hardware("trn1")


def of(
    body: str, *shapes: tuple[int, ...], target: str = "trn1", compiler: Compiler | None = None
) -> TimeEstimate:
    inputs = [np.broadcast_to(np.zeros((), np.float32), shape) for shape in shapes]
    outcome = run(body, *inputs, mode="trace")
    assert outcome.fault is None, outcome.fault
    return estimate(outcome.trace, hardware(target), compiler)


@pytest.mark.parametrize("name", TARGETS)
def test_every_constant_names_its_source(name: str) -> None:
    data = json.loads((resources.files("accelopt_profiling") / "targets" / f"{name}.json").read_text("utf-8"))
    for group in ("limits", "clock_ghz", "peaks", "dma", "cost", "compiler", "interval"):
        for key, entry in data[group].items():
            assert entry["source"].strip(), f"{name}: {group}.{key}"
            if "low" in entry:
                assert entry["low"] <= entry["value"] <= entry["high"], f"{name}: {group}.{key}"


def test_a_gpu_is_no_target_for_nki() -> None:
    with pytest.raises(UnknownTargetError, match=r"H100.*trn1, trn2, trn3"):
        hardware("h100")


#: Opcode, engine, changes to the instruction, engine cycles as the nisa stub prints them (N = 512).
COSTS: list[tuple[str, str, dict[str, Any], float]] = [
    ("activation", "ScalarE", {}, 512),
    ("activation_reduce", "ScalarE", {}, 512 + 64),
    ("tensor_scalar", "VectorE", {}, 512),
    ("tensor_tensor", "VectorE", {}, 1024),
    ("tensor_tensor", "VectorE", {"psum_inputs": 1}, 512),
    ("scalar_tensor_tensor", "VectorE", {}, 1024),
    ("tensor_tensor_scan", "VectorE", {}, 1024),
    ("tensor_reduce", "VectorE", {}, 512),
    ("tensor_scalar", "VectorE", {"free": 8}, 64),
]


@pytest.mark.parametrize(("opcode", "engine", "changes", "cycles"), COSTS)
def test_costs_are_the_documented_cycles_and_what_starting_takes(
    opcode: str, engine: str, changes: dict[str, Any], cycles: float
) -> None:
    instruction = TracedInstruction(opcode, (engine,), 1, 128, 512)
    for name, value in changes.items():
        setattr(instruction, name, value)
    overhead = TRN1.scalar_overhead if engine == "ScalarE" else TRN1.vector_overhead
    expected = (cycles + overhead) / TRN1.clocks[engine]
    assert engine_ns(instruction, engine, TRN1) == pytest.approx(expected)


@pytest.mark.parametrize(("itemsize", "factor"), [(2, 1), (4, 4)])
def test_a_matmul_takes_a_cycle_per_column_and_an_overhead_per_pass(itemsize: int, factor: int) -> None:
    instruction = TracedInstruction("nc_matmul", ("TensorE",), 1, 128, 512)
    instruction.itemsize, instruction.stationary = itemsize, 128
    expected = factor * (512 + TRN1.matmul_overhead) / 2.8
    assert engine_ns(instruction, "TensorE", TRN1) == pytest.approx(expected)


LOOP = """
out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
r, c = nl.mgrid[0:128, 0:{width}]
for i in nl.affine_range(a.shape[0] // 128):
    for j in nl.affine_range(a.shape[1] // {width}):
        x = nl.load(a[i * 128 + r, j * {width} + c])
{work}
        nl.store(out[i * 128 + r, j * {width} + c], y)
return out
"""


def loop(*work: str, width: int = 512) -> str:
    return LOOP.format(width=width, work="\n".join(f"        {line}" for line in work))


SHAPE = (1024, 4096)
NORM = """
out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
{before}
for i in nl.affine_range(a.shape[0] // 128):
{inside}
    x = nl.load(a[i * 128:i * 128 + 128, :])
    for _ in nl.static_range(8):
        x = nl.tanh(x)
    nl.store(out[i * 128:i * 128 + 128, :], nl.multiply(x, w))
return out
"""

KEPT = """
out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
{before}
for i in nl.affine_range(a.shape[0] // 128):
{inside}
    x = nl.load(a[i * 128:i * 128 + 128, :])
    nl.store(out[i * 128:i * 128 + 128, :], nisa.activation(op=nl.exp, data=x, bias=w[:, 0:1]))
return out
"""
PRODUCT = """
out = nl.ndarray((128, 4096), dtype=a.dtype, buffer=nl.shared_hbm)
left = [nl.load(a[k * 128:k * 128 + 128, :]) for k in range(8)]
right = [[nl.load(b[k * 128:k * 128 + 128, n * {wide}:(n + 1) * {wide}]) for n in range({of})] for k in range(8)]
for j in range(32):
    bank = nl.zeros((128, 128), nl.float32, buffer=nl.psum)
    for k in range(8):
        bank += nisa.nc_matmul(left[k], right[k][{part}][:, {within} * 128:({within} + 1) * 128])
    nl.store(out[:, j * 128:j * 128 + 128], nl.copy(bank))
return out
"""
#: Two versions of one kernel that compute the same, the slower first; the last entry is the shapes of the inputs.
PAIRS = {
    "larger tiles": (loop("y = nl.exp(x)", width=128), loop("y = nl.exp(x)", width=2048), [SHAPE]),
    "multiply as the activation's scale": (
        loop(*["x = nl.exp(nl.add(nl.multiply(x, -1.0), 0.5))"] * 3, "y = x", width=4096),
        loop(*["x = nisa.activation(op=nl.exp, data=x, scale=-1.0, bias=0.5)"] * 3, "y = x", width=4096),
        [SHAPE],
    ),
    "divide by a column, or multiply by its reciprocal": (
        loop("s = nl.sum(x, axis=1)", "y = nl.divide(x, s)", "y = nisa.tensor_tensor(y, y, op=nl.divide)", width=4096),
        loop("s = nl.sum(x, axis=1)", "y = nl.multiply(x, nisa.reciprocal(s))", "y = nl.copy(y)", width=4096),
        [SHAPE],
    ),
    "sigmoid spelled out, or as one activation": (
        loop("e = nl.exp(nl.multiply(x, -1.0))", "y = nl.divide(x, nl.add(e, 1.0))", "y = nl.multiply(y, x)",
             width=4096),
        loop("y = nl.multiply(nl.multiply(x, nl.sigmoid(x)), x)", width=4096),
        [SHAPE],
    ),
    "two steps in one tensor_scalar": (
        loop("y = nisa.tensor_scalar(x, nl.multiply, 2.0, engine=nisa.vector_engine)",
             *["y = nisa.tensor_scalar(y, nl.add, 1.0, engine=nisa.vector_engine)"] * 5, width=4096),
        loop("y = nisa.tensor_scalar(x, nl.multiply, 2.0, op1=nl.add, operand1=1.0, engine=nisa.vector_engine)",
             *["y = nisa.tensor_scalar(y, nl.add, 1.0, op1=nl.add, operand1=1.0, engine=nisa.vector_engine)"] * 2,
             width=4096),
        [SHAPE],
    ),
    "all on one engine, or on two": (
        loop(*["y = nisa.tensor_scalar(x, nl.multiply, 2.0, engine=nisa.vector_engine)"] * 6, width=4096),
        loop(*["y = nisa.tensor_scalar(x, nl.multiply, 2.0, engine=nisa.vector_engine)",
               "y = nisa.activation(op=nl.copy, data=x, scale=2.0)"] * 3, width=4096),
        [SHAPE],
    ),
    "broadcast in the loop, or before it": (
        NORM.format(before="", inside="    w = nl.broadcast_to(nl.load(b[0:1, :]), shape=(128, 4096))"),
        NORM.format(before="w = nl.broadcast_to(nl.load(b[0:1, :]), shape=(128, 4096))", inside=""),
        [SHAPE, (1, 4096)],
    ),
    "a load in the loop, or before it": (
        KEPT.format(before="", inside="    w = nl.load(b[0:128, :])"),
        KEPT.format(before="w = nl.load(b[0:128, :])", inside=""),
        [SHAPE, (128, 4096)],
    ),
    "tiles of one product's width, or rows of four": (
        PRODUCT.format(wide=128, part="j", of=32, within=0),
        PRODUCT.format(wide=512, part="j // 4", of=8, within="j % 4"),
        [(1024, 128), (1024, 4096)],
    ),
    "short pieces by a transposed load, or rows": (
        loop("y = nl.copy(nl.load_transpose2d(a[0:128, 0:128]))", width=128),
        loop("y = nl.copy(nl.load(a[0:128, 128:256]))", width=128),
        [SHAPE],
    ),
    "sum on its own, or with the activation": (
        loop("y = nl.exp(x)", *["s = nisa.tensor_reduce(nl.add, data=y, axis=[1])"] * 4, width=4096),
        loop("s = nl.ndarray((nl.par_dim(128), 1), dtype=np.float32)",
             "y = nisa.activation_reduce(op=nl.exp, data=x, reduce_op=nl.add, reduce_res=s)", width=4096),
        [SHAPE],
    ),
}  # fmt: skip


#: Rewrites that profiles of a device show the Beta 1 compiler to make: they pay only where it is not at work.
DONE_BY_THE_COMPILER = {
    "broadcast in the loop, or before it",
    "a load in the loop, or before it",
}
#: On trn2 it makes a transposed load one of rows itself.
AS_TEXT = DONE_BY_THE_COMPILER | {"short pieces by a transposed load, or rows"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pair", PAIRS)
def test_the_faster_of_two_versions_comes_out_faster(pair: str, target: str) -> None:
    slow, fast, shapes = PAIRS[pair]
    compiler = AS_WRITTEN if pair in AS_TEXT else None
    one, other = (of(body, *shapes, target=target, compiler=compiler).us for body in (fast, slow))
    assert one < 0.97 * other


@pytest.mark.parametrize("pair", sorted(DONE_BY_THE_COMPILER))
def test_what_the_compiler_of_beta_1_does_itself_makes_no_difference(pair: str) -> None:
    slow, fast, shapes = PAIRS[pair]
    assert of(fast, *shapes).us == pytest.approx(of(slow, *shapes).us, rel=0.01)


def test_an_estimate_is_an_interval_around_its_value() -> None:
    answer = of(loop("y = nl.exp(x)"), SHAPE)
    assert answer.low_us < answer.us < answer.high_us
    assert answer.us >= answer.roofline_us
    assert answer.percent_of_peak == pytest.approx(100 * answer.roofline_us / answer.us)


def test_the_bound_is_the_engine_with_the_most_work() -> None:
    assert of(loop("y = nl.exp(x)"), SHAPE).bound == "memory"
    assert of(loop("y = x", *["y = nisa.tensor_tensor(y, x, op=nl.add)"] * 8), SHAPE).bound == "VectorE"


def test_lines_carry_their_own_cost() -> None:
    plan = of(loop("y = nl.exp(x)", width=1024), SHAPE).schedule
    load, work, store = FIRST_LINE + 4, FIRST_LINE + 5, FIRST_LINE + 6
    size = SHAPE[0] * SHAPE[1] * 4
    assert plan.line_bytes == {load: size, store: size}
    assert set(plan.lines[work]) == {"ScalarE"}
    assert plan.read_bytes == plan.write_bytes == size
    assert plan.line_descriptors[load] == SHAPE[0] * SHAPE[1] // 1024


def test_work_that_depends_on_nothing_overlaps_and_a_chain_does_not() -> None:
    apart = loop(
        "y = nisa.tensor_scalar(x, nl.add, 1.0, engine=nisa.vector_engine)", "z = nl.exp(x)", width=4096
    )
    chain = loop(
        "z = nisa.tensor_scalar(x, nl.add, 1.0, engine=nisa.vector_engine)", "y = nl.exp(z)", width=4096
    )
    one_tile = (128, 4096)
    assert of(apart, one_tile).us < of(chain, one_tile).us


def test_a_load_of_what_is_on_the_chip_already_moves_nothing() -> None:
    twice = loop("z = nl.load(a[i * 128 + r, j * 512 + c])", "y = nisa.tensor_tensor(x, z, op=nl.add)")
    plan = of(twice, SHAPE).schedule
    assert plan.read_bytes == SHAPE[0] * SHAPE[1] * 4
    assert plan.residency.reused_bytes == SHAPE[0] * SHAPE[1] * 4


SPILLING = """
out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
kept = nl.ndarray(({tiles}, nl.par_dim(128), 4096), dtype=a.dtype, buffer=nl.sbuf)
for i in nl.affine_range({tiles}):
    kept[i] = nl.exp(nl.load(a[i * 128:i * 128 + 128, :]))
for i in nl.affine_range({tiles}):
    nl.store(out[i * 128:i * 128 + 128, :], kept[i])
return out
"""


@pytest.mark.parametrize(("tiles", "spills"), [(6, False), (32, True)])
def test_what_does_not_fit_is_spilled_and_paid_for(tiles: int, spills: bool) -> None:
    plan = of(SPILLING.format(tiles=tiles), (tiles * 128, 4096)).schedule
    tile = 128 * 4096 * 4
    assert (plan.residency.saved_bytes > 0) == spills
    assert plan.residency.peak[MemorySpace.SBUF] >= tiles * 16384
    assert plan.residency.saved_bytes == plan.residency.reloaded_bytes
    assert plan.read_bytes == tiles * tile + plan.residency.reloaded_bytes
    room = TRN1.sbuf_usable * 128
    reserved = TRN1.compiler.reserve_bytes * 128
    assert plan.residency.saved_bytes <= max(0, tiles * tile - room + reserved) + 2 * tile


def test_a_chain_of_small_steps_is_bound_by_latency() -> None:
    body = """
    out = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a[0:128, 0:1])
    for _ in nl.sequential_range(64):
        x = nl.exp(nisa.tensor_tensor(x, x, op=nl.multiply))
    nl.store(out, x)
    return out
    """
    assert of(body, (128, 4096)).bound == "latency"


def test_waits_and_the_critical_path_tell_where_the_time_goes() -> None:
    answer = of(loop("y = nisa.tensor_tensor(x, x, op=nl.multiply)", width=4096), (128, 4096))
    load, work, store = FIRST_LINE + 4, FIRST_LINE + 5, FIRST_LINE + 6
    total = answer.schedule.total
    assert sum(answer.path.on.values()) == pytest.approx(total)
    assert sum(answer.path.lines.values()) == pytest.approx(total)
    assert set(answer.path.lines) == {load, work, store}
    (wait,) = (w for w in answer.waits if w.line == (store if answer.critical == "DMA" else work))
    assert wait.cause_line == (work if answer.critical == "DMA" else load)
    assert wait.why == "operand"


def test_an_empty_trace_takes_no_time() -> None:
    assert estimate(Trace(), TRN1).us == 0.0


@pytest.mark.parametrize(("tiles", "crowded"), [(8, False), (12, True)])
def test_more_psum_banks_than_there_are_is_told(tiles: int, crowded: bool) -> None:
    body = f"""
    out = nl.ndarray(({tiles}, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a[0:128, 0:128]), nl.load(a[0:128, 0:512])
    held = [nisa.nc_matmul(x, y) for _ in range({tiles})]
    for i in range({tiles}):
        nl.store(out[i], nl.copy(held[i]))
    return out
    """
    residency = of(body, (128, 512)).schedule.residency
    assert (residency.crowded == {FIRST_LINE + 2: tiles}) == crowded
    assert bool(residency.crowded) == crowded
    assert residency.peak[MemorySpace.PSUM] == tiles * 2048


#: Tiles of an instruction: bytes per element and memory of each; cycles on trn2 for N = 512.
BF16_COSTS: list[tuple[str, list[tuple[int, MemorySpace]], float]] = [
    ("tensor_copy", [(2, MemorySpace.SBUF), (2, MemorySpace.SBUF)], 512 / 4),
    ("tensor_copy", [(2, MemorySpace.PSUM), (2, MemorySpace.SBUF)], 512 / 2),
    ("tensor_scalar", [(2, MemorySpace.SBUF), (4, MemorySpace.SBUF)], 512),
    ("tensor_tensor", [(4, MemorySpace.SBUF)] * 3, 512),
    ("tensor_tensor", [(2, MemorySpace.SBUF)] * 3, 512 / 2),
    ("tensor_reduce", [(2, MemorySpace.SBUF)] * 2, 512),
]


@pytest.mark.parametrize(("opcode", "tiles", "cycles"), BF16_COSTS)
def test_bf16_is_faster_on_vector_engine(
    opcode: str, tiles: list[tuple[int, MemorySpace]], cycles: float
) -> None:
    machine = hardware("trn2")
    blocks = [BlockInfo(n, memory, (128, 512), size, "t", 1, False) for n, (size, memory) in enumerate(tiles)]
    instruction = TracedInstruction(opcode, ("VectorE",), 1, 128, 512)
    regions = [(block, ((0, 128), (0, 512))) for block in blocks]
    instruction.reads, instruction.writes = regions[:-1], regions[-1:]
    vector_cycles = (
        engine_ns(instruction, "VectorE", machine) * machine.clocks["VectorE"] - machine.vector_overhead
    )
    assert vector_cycles == pytest.approx(cycles)


def test_a_tile_that_each_iteration_overwrites_takes_turns_as_one_made_in_the_loop_does() -> None:
    """Declared once before the loop, or in it: the values are the same, and so is the time."""
    body = """
out = nl.ndarray((128, 32768), dtype=nl.float32, buffer=nl.shared_hbm)
{before}
for i in range(64):
    {inside}
    nisa.dma_copy(tile, a[:, nl.ds(i * 512, 512)])
    nisa.tensor_scalar(scaled, tile, nl.multiply, 2.0)
    nisa.dma_copy(out[:, nl.ds(i * 512, 512)], scaled)
return out
"""
    allocation = "tile, scaled = sbuf(128, 512), sbuf(128, 512)"
    times = []
    for before, inside in ((allocation, "pass"), ("pass", allocation)):
        shape = np.broadcast_to(np.zeros((), np.float32), (128, 32768))
        outcome = run_current(body.format(before=before, inside=inside), shape, mode="trace")
        assert outcome.fault is None, outcome.fault
        times.append(estimate(outcome.trace, hardware("trn2")).us)
    assert times[0] == pytest.approx(times[1], rel=0.02)


def test_a_small_transfer_takes_what_it_takes_to_issue_one() -> None:
    """Where descriptors are written before the launch it occupies as many queues as it has pieces."""
    machine = hardware("trn2")
    issued, prepared = machine.compiler_of("current"), machine.compiler_of("beta1")
    assert dma_ns(4, 1, machine, issued) == machine.transfer_ns
    assert dma_ns(4, 1, machine, prepared) == machine.transfer_ns / machine.dma_queues
    assert dma_ns(4, 128, machine, prepared) == machine.transfer_ns
    assert dma_ns(1 << 22, 128, machine, issued) > machine.transfer_ns


PRODUCTS = """
out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
left, right = nl.load(a[:, 0:128]), nl.load(a)
bank = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
for i in nl.sequential_range(64):
    bank += nisa.nc_matmul(left, right)
nl.store(out, nl.copy(bank))
return out
"""


def products_us(rows: int, target: str) -> tuple[float, float]:
    """Return the time of 64 products with so many rows, and what half the clock costs of it."""
    operand = np.broadcast_to(np.zeros((), np.float32), (rows, 512))
    outcome = run(PRODUCTS, operand, mode="trace")
    assert outcome.fault is None, outcome.fault
    answer = estimate(outcome.trace, hardware(target))
    lost = answer.schedule.half_clock_ns / 1000
    assert answer.low_us == pytest.approx((answer.us - lost) * hardware(target).low)
    return answer.us, lost


def test_tensor_engine_keeps_half_its_clock_where_half_of_its_rows_work() -> None:
    full, begin = products_us(128, "trn2")
    half, lost = products_us(64, "trn2")
    assert 0 < begin < 4  # the first window
    assert lost == pytest.approx(64 * 4 * 518 / 2.4 / 1000, rel=0.01)
    assert half - full == pytest.approx(lost - begin, rel=0.02)
    assert products_us(64, "trn1")[1] == 0.0


def test_a_transfer_moves_in_parts_between_others() -> None:
    lane = _Lane()
    assert lane.take(0.0, 10.0, 0, 512, parts=True) == (0.0, 10.0, -1)
    assert lane.take(30.0, 10.0, 1, 512, parts=True) == (30.0, 40.0, -1)  # leaves a gap of 20
    assert lane.take(0.0, 25.0, 2, 512, parts=True) == (10.0, 45.0, 0)  # the gap, and 5 behind
    assert lane.busy == lane.end == 45.0


@pytest.mark.parametrize("parts", [True, False])
def test_a_gap_that_fits_is_used_whole(parts: bool) -> None:
    lane = _Lane()
    lane.take(10.1, 10.0, 0, 512, parts)
    start, end, _ = lane.take(0.3, 0.1 + 0.2, 1, 512, parts)  # a sum that no float holds
    assert (start, end) == (0.3, pytest.approx(0.6))
    assert lane.end == 20.1
