"""The time estimate: closed forms where they exist, and what must hold for any counts."""

import dataclasses
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.quantity import Known
from accelopt_profiling.targets import GpuTarget, load_gpu, target_names
from accelopt_profiling.triton.compilation.compiled import (
    CompiledFacts,
    CompileProblem,
    MultiprocessorOccupancy,
    occupancy,
)
from accelopt_profiling.triton.estimation.estimate import estimate
from accelopt_profiling.triton.estimation.residency import residency
from accelopt_profiling.triton.estimation.roofline import matrix_peak
from accelopt_profiling.triton.estimation.traffic import Traffic
from accelopt_profiling.triton.estimation.traffic import traffic as traffic_with
from accelopt_profiling.triton.interpreter.counting import LaunchCounts, LineCounts

H100 = load_gpu("h100")


def traffic(counts: LaunchCounts, target: GpuTarget, programs: int) -> Traffic:
    """The traffic with ``programs`` resident on the device."""
    return traffic_with(
        counts, target, dataclasses.replace(residency(counts, None, target), programs=programs)
    )


def streaming(
    megabytes: float, programs: int = 8192, sampled: int = 4, passes: int = 1, **line: object
) -> LaunchCounts:
    """A launch that reads one tensor ``passes`` times, each program its own part, and writes another."""
    sectors = int(megabytes * 1e6 / 32 / programs)
    one = LineCounts(
        load_bytes=32 * sectors * sampled * passes,
        load_sectors=sectors * sampled * passes,
        store_bytes=32 * sectors * sampled,
        store_sectors=sectors * sampled,
        **line,  # type: ignore[arg-type]
    )
    size = 32 * sectors * programs
    return LaunchCounts(
        programs,
        sampled,
        {7: one},
        {"x": sectors * sampled},
        {"y": sectors * sampled},
        {"x": size, "y": size},
        {"x": sectors * sampled * passes},
        {"y": sectors * sampled},
    )


def us(counts: LaunchCounts, compiled: CompiledFacts | None = None, target: str = "h100") -> float:
    value = estimate(counts, compiled, load_gpu(target)).latency.us
    assert value is not None
    return value


def facts(programs: int = 4, **fields: object) -> CompiledFacts:
    fits = MultiprocessorOccupancy(programs, 4 * programs, 4 * programs / 64, "registers")
    return CompiledFacts("h100", "sm_90", warps=4, occupancy=fits, **fields)  # type: ignore[arg-type]


def test_a_streaming_kernel_takes_its_bytes_at_the_reachable_bandwidth() -> None:
    time_estimate = estimate(streaming(400), None, H100)
    bytes_moved = 2 * 32 * int(400e6 / 32 / 8192) * 8192
    assert time_estimate.bound == "memory"
    assert time_estimate.latency.us == pytest.approx(5.7 + 1e6 * bytes_moved / (0.9 * 3352e9), rel=0.01)
    assert time_estimate.percent_of_peak.value == pytest.approx(
        100 * (1e6 * bytes_moved / 3352e9) / time_estimate.latency.us
    )
    assert time_estimate.quantities["dram_bytes"].value == pytest.approx(bytes_moved)


def test_what_a_program_loads_after_it_stored_it_comes_from_l2() -> None:
    fresh, own = streaming(400), streaming(400)
    own.own_sectors = dict(own.unique_load_sectors)
    before, after = (traffic(counts, H100, 2112) for counts in (fresh, own))
    assert after.dram == pytest.approx(before.dram / 2, rel=0.01)
    assert after.from_l2 == before.from_l2
    assert us(own) < us(fresh)


def test_what_l2_answers_beside_dram_adds_to_the_time() -> None:
    once, again = streaming(400), streaming(400)
    again.lines[7].store_sectors *= 2  # into the same sectors
    assert 1.02 * us(once) < us(again) < 1.3 * us(once)


def test_a_tiny_kernel_is_bound_by_its_launch() -> None:
    time_estimate = estimate(streaming(0.3, programs=16), None, H100)
    assert time_estimate.bound == "launch"


def test_reading_again_costs_dram_only_where_the_working_set_leaves_l2() -> None:
    small, large = streaming(400, programs=8192, passes=3), streaming(4000, programs=1024, passes=3)
    resident = facts(1)
    assert traffic(small, H100, 132).dram == pytest.approx(traffic(streaming(400), H100, 132).dram)
    assert us(large, resident) > 1.5 * us(streaming(4000, programs=1024), resident)


def test_data_that_all_programs_share_is_read_from_dram_once() -> None:
    counts = streaming(400)
    counts.unique_load_sectors["weight"] = 128
    counts.load_sectors["weight"] = 4 * 128
    counts.tensor_bytes["weight"] = 4096
    with_weight = traffic(counts, H100, 1000).dram
    assert with_weight - traffic(streaming(400), H100, 1000).dram == pytest.approx(4096)


def test_shared_data_larger_than_l2_lies_between_once_and_once_a_wave() -> None:
    """A matmul 8192 x 8192 x 8192 in fp16: 256-row blocks of A and B, both shared by 32 programs."""
    block = 256 * 8192 * 2 // 32
    counts = LaunchCounts(
        1024, 4, {3: LineCounts(load_sectors=8 * block, mma_flops={"fp16": 4 * 2 * 256 * 256 * 8192})},
        {"a": 4 * block, "b": 4 * block}, {}, {"a": 8192 * 8192 * 2, "b": 8192 * 8192 * 2},
        {"a": 4 * block, "b": 4 * block}, {},
    )  # fmt: skip
    moved = traffic(counts, H100, 132)
    assert moved.dram_low == pytest.approx(2 * 8192 * 8192 * 2)
    assert moved.dram_low < moved.dram < moved.dram_high
    time_estimate = estimate(counts, facts(matrix_unit="wgmma", pipeline_depth=3), H100)
    assert time_estimate.bound == "tensor core"
    assert time_estimate.times_us["tensor core"] == pytest.approx(
        1e6 * 2 * 8192**3 / (0.9 * 989.4e12) / (1024 / (8 * 132))
    )
    assert time_estimate.percent_of_peak.value is not None
    assert 40 < time_estimate.percent_of_peak.value <= 90


def test_dependent_arithmetic_lies_between_its_longest_part_and_its_sum() -> None:
    counts = streaming(1, programs=8448, mma_flops={"fp16": 10**9}, float_ops=2 * 10**7, special=2 * 10**6)
    time_estimate = estimate(counts, facts(matrix_unit="wgmma", pipeline_depth=3), H100)
    parts = [time_estimate.times_us[name] for name in ("tensor core", "fp32", "special functions")]
    assert min(parts) > 0.1 * max(parts)
    assert time_estimate.latency.us is not None
    assert max(parts) < time_estimate.latency.us - 5.7 < sum(parts)


@pytest.mark.parametrize(
    ("compiled", "slower"),
    [
        (facts(matrix_unit="wgmma", pipeline_depth=3), 1.0),
        (facts(matrix_unit="mma", pipeline_depth=3), 1 / 0.63),
    ],
)
def test_the_older_matrix_instruction_reaches_less_of_hoppers_peak(
    compiled: CompiledFacts, slower: float
) -> None:
    counts = streaming(1, mma_flops={"fp16": 10**9})
    best = estimate(counts, facts(matrix_unit="wgmma", pipeline_depth=3), H100).times_us["tensor core"]
    assert estimate(counts, compiled, H100).times_us["tensor core"] == pytest.approx(slower * best)


def test_a_product_without_matrix_instructions_runs_on_the_ordinary_units() -> None:
    counts = streaming(1, mma_flops={"fp32": 10**9})
    assert estimate(counts, facts(matrix_unit=None), H100).bound == "fp32"
    failed = facts(matrix_unit=None, problem=CompileProblem("compile-error", "no"))
    assert estimate(counts, failed, H100).bound == "tensor core"


def test_few_programs_cannot_use_the_whole_device() -> None:
    assert us(streaming(64, programs=8)) > 2.5 * us(streaming(64, programs=1024))


@pytest.mark.parametrize(
    ("dtype", "target", "peak"),
    [("fp16", "a100", "fp16"), ("fp32", "h100", "tf32"), ("fp8e4nv", "h100", "fp8"), ("fp8e5", "a100", "fp16"),
     ("int8", "rtx4090", "int8"), ("bf16", "mi300x", "bf16"), ("fp64", "b200", "fp64")],
)  # fmt: skip
def test_products_are_held_against_the_peak_of_their_type(dtype: str, target: str, peak: str) -> None:
    assert matrix_peak(dtype, load_gpu(target)) == peak


def test_nothing_sampled_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to estimate"):
        estimate(LaunchCounts(8, 0), None, H100)


def test_it_is_quick() -> None:
    counts = streaming(10)
    started = time.process_time()
    for _ in range(20):
        estimate(counts, None, H100)
    assert (time.process_time() - started) / 20 < 0.005


LINES = st.builds(
    LineCounts,
    load_bytes=st.integers(0, 10**9),
    store_bytes=st.integers(0, 10**9),
    load_sectors=st.integers(0, 10**8),
    store_sectors=st.integers(0, 10**8),
    float_ops=st.integers(0, 10**10),
    special=st.integers(0, 10**9),
    mma_flops=st.dictionaries(
        st.sampled_from(["fp16", "fp32", "fp8e5", "int8", "fp64"]), st.integers(0, 10**12)
    ),
)
SECTORS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 10**7))


@st.composite
def any_counts(draw: st.DrawFn) -> LaunchCounts:
    """Each sector of a tensor was asked for in a line."""
    programs = draw(st.integers(1, 10**6))
    loads, stores = draw(SECTORS), draw(SECTORS)
    requests = {name: sectors * draw(st.integers(1, 4)) for name, sectors in loads.items()}
    lines = draw(st.dictionaries(st.integers(1, 99), LINES, max_size=4))
    lines[100] = LineCounts(load_sectors=sum(requests.values()), store_sectors=sum(stores.values()))
    return LaunchCounts(
        programs,
        draw(st.integers(1, min(programs, 64))),
        lines,
        loads,
        stores,
        draw(st.dictionaries(st.sampled_from("abc"), st.integers(1, 10**11))),
        requests,
        stores,
    )


@pytest.mark.slow
@given(
    any_counts(),
    st.sampled_from(target_names("gpu")),
    st.sampled_from([None, facts(), facts(1, matrix_unit="mma")]),
)
def test_any_launch_gets_a_finite_estimate_inside_its_interval(
    counts: LaunchCounts, target: str, compiled: CompiledFacts | None
) -> None:
    gpu = load_gpu(target)
    time_estimate = estimate(counts, compiled, gpu)
    latency = time_estimate.latency
    assert latency.known is Known.ESTIMATED
    assert latency.us is not None
    assert latency.low_us is not None
    assert latency.high_us is not None
    assert 0 < latency.low_us <= latency.us <= latency.high_us < math.inf
    assert latency.us >= gpu["model.launch_floor"]
    peak = time_estimate.percent_of_peak
    assert peak.low is not None
    assert peak.value is not None
    assert peak.high is not None
    assert 0 <= peak.low <= peak.value <= peak.high <= 100
    assert time_estimate.bound in {*time_estimate.times_us, "launch"}
    moved = traffic(counts, gpu, 132)
    assert moved.dram_low <= moved.dram * (1 + 1e-9)
    assert moved.dram <= moved.dram_high * (1 + 1e-9)
    assert moved.compulsory <= moved.dram_low * (1 + 1e-9)


@pytest.mark.slow
@given(any_counts(), st.integers(1, 10**8))
def test_more_work_never_takes_less_time(counts: LaunchCounts, more: int) -> None:
    before = us(counts)
    line = counts.lines.setdefault(1, LineCounts())
    line.float_ops += more
    line.load_sectors += more
    line.special += more
    line.mma_flops["fp16"] = line.mma_flops.get("fp16", 0) + more
    assert us(counts) >= before


@pytest.mark.parametrize(
    ("target", "warps", "registers", "shared", "programs", "limit"),
    [
        # From NVIDIA's occupancy calculator: 64 warps, 65536 registers, 32 programs on 8.0 and 9.0.
        ("a100", 4, 32, 0, 16, "warps"),
        ("a100", 1, 32, 0, 32, "programs"),
        ("h100", 8, 128, 0, 2, "registers"),
        ("h100", 8, 122, 98304, 2, "registers"),
        ("h100", 4, 64, 115712, 2, "shared memory"),
        ("h100", 4, 64, 115713, 1, "shared memory"),
        ("h100", 4, 32, 113000, 2, "shared memory"),
        ("rtx4090", 4, 32, 0, 12, "warps"),
        ("h100", 8, 32, 240000, 0, "shared memory"),
        ("mi300x", 4, 128, 0, 4, "registers"),
        ("mi300x", 4, 64, 65536, 1, "shared memory"),
    ],
)
def test_occupancy(target: str, warps: int, registers: int, shared: int, programs: int, limit: str) -> None:
    result = occupancy(load_gpu(target), warps=warps, registers=registers, shared_bytes=shared)
    assert (result.programs, result.limit) == (programs, limit)
