"""What a kernel engineer knows of two versions of a kernel, the estimate must say too."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path

import pytest
import triton.language as tl
from support import kernels_to_estimate as kernels

from accelopt_profiling.targets import load_gpu
from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.compilation.compile import compile_launch
from accelopt_profiling.triton.estimation.causes import cost_findings
from accelopt_profiling.triton.estimation.estimate import estimate

pytestmark = pytest.mark.triton


@functools.cache
def profiled(name, *arguments, target="h100", **options):
    """The estimate, findings and compiler's facts of one launch at full size, from four programs."""
    gpu = load_gpu(target)
    with emulated(target, sample=4, hollow=True) as session:
        getattr(kernels, f"run_{name}")(*arguments, **options)
    (execution,) = session.executions
    assert execution.error is None
    compiled = compile_launch(execution.launch, gpu)
    assert compiled.problem is None
    launch_estimate = estimate(execution.counts, compiled, gpu)
    return (
        launch_estimate,
        cost_findings(execution.counts, launch_estimate, gpu, execution.launch.line),
        compiled,
    )


def us(*arguments, **options):
    return profiled(*arguments, **options)[0].latency.us


def line_of(comment):
    lines = Path(inspect.getfile(kernels)).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


@pytest.mark.parametrize("target", ["h100", "rtx4090"])
def test_no_interval_begins_below_what_must_cross_dram_at_the_datasheets_bandwidth(target):
    launch_estimate, _, _ = profiled("add", 1024, target=target)
    assert launch_estimate.latency.low_us >= 1e6 * 3 * 4 * (1 << 25) / load_gpu(target)["dram_bandwidth"]


def test_a_million_programs_of_32_lanes_wait_for_their_starts_and_loads():
    launch_estimate, findings, _ = profiled("add", 32)
    assert 400 < launch_estimate.latency.us < 900
    assert launch_estimate.latency.us > 3 * us("add", 1024)
    assert "small-programs" in [f.code for f in findings]


def test_warps_without_lanes_of_their_own_hide_no_latency():
    assert us("add", 128, warps=8) >= us("add", 128)


def test_fp64_costs_what_the_target_takes_for_it():
    slow, fast = us("polynomial", tl.float64, target="rtx4090"), us("polynomial", tl.float64)
    assert us("polynomial", tl.float32) < 0.9 * fast
    rates = load_gpu("h100")["peak.fp64"] / load_gpu("rtx4090")["peak.fp64"]
    assert 0.5 * rates < slow / fast < 1.5 * rates
    launch_estimate, findings, _ = profiled("polynomial", tl.float64, target="rtx4090")
    assert launch_estimate.bound == "fp64"
    assert [(f.code, f.line) for f in findings] == [("slow-type", line_of("the arithmetic"))]
    assert "1/64" in findings[0].message


def test_atomics_on_one_address_come_one_after_the_other():
    launch_estimate, findings, _ = profiled("count", False)
    assert launch_estimate.bound == "atomics"
    assert launch_estimate.latency.us >= (1 << 22) / 1.98e3
    assert launch_estimate.latency.us > 20 * us("count", True)
    assert [(f.code, f.line) for f in findings] == [("contended-atomics", line_of("the update"))]
    assert profiled("count", True)[1] == []


def test_weights_that_all_programs_share_do_not_make_a_kernel_bound_by_l2():
    launch_estimate, findings, _ = profiled("scale_rows")
    assert launch_estimate.bound == "memory"
    assert launch_estimate.times_us["L2"] < 0.8 * launch_estimate.times_us["memory"]
    assert findings == []


def test_random_numbers_cost_their_integer_operations():
    launch_estimate, findings, _ = profiled("noise", True)
    additions = 60 * (1 << 26)  # machine code of sm_90 has 18 LOP3, 16 IMAD.HI and 14 IMAD an element
    rate = 64 * 132 * 1.98e9
    assert 1e6 * additions / rate < launch_estimate.times_us["integer"] < 1.5e6 * additions / rate
    assert launch_estimate.bound == "integer"
    assert [(f.code, f.line) for f in findings] == [("integer-arithmetic", line_of("the numbers"))]
    plain, findings, _ = profiled("noise", False)
    assert launch_estimate.latency.us > 1.3 * plain.latency.us
    assert findings == []


def test_integer_operations_in_a_loop_count_each_time_and_unrolled_ones_once():
    small, large = (profiled("hashed", rounds)[0].times_us["integer"] for rounds in (64, 256))
    assert large == pytest.approx(4 * small, rel=0.05)
    operations = 3 * 256 * (1 << 24)
    assert large < 1e6 * operations / (64 * 132 * 1.98e9)


def test_divisions_of_each_element_cost_time_and_offsets_do_not():
    divided, _, _ = profiled("rotated", True)
    plain, _, _ = profiled("rotated", False)
    assert plain.times_us["integer"] < 0.1 * plain.times_us["memory"]
    assert divided.times_us["integer"] > 5 * plain.times_us["integer"]
    for name, arguments in (("add", (1024,)), ("scale_rows", ())):
        times = profiled(name, *arguments)[0].times_us
        assert times["integer"] < 0.15 * times["memory"]


def test_offsets_that_the_compiler_moves_out_of_a_loop_are_not_counted_each_time():
    times = profiled("product", 128, 128, 64)[0].times_us
    assert times["integer"] < 0.1 * times["tensor core"]


@pytest.mark.slow
def test_a_spilled_tile_is_never_ranked_above_a_clean_one():
    spilled, _, compiled = profiled("product", 256, 256, 32, warps=4)
    assert compiled.spill_bytes > 0
    for tile in ((128, 128, 64), (128, 256, 64), (64, 64, 32)):
        clean, _, facts = profiled("product", *tile)
        assert not facts.spill_bytes
        assert clean.latency.us < spilled.latency.us
    assert spilled.bound == "spills"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["h100", "a100"])
def test_stages_differ_where_loads_feed_products(target):
    times = [us("product", 128, 128, 32, stages=stages, warps=8, target=target) for stages in (1, 2, 4)]
    assert times[0] > 1.05 * times[1] > times[2]


@pytest.mark.slow
def test_a_loop_that_loads_nothing_ahead_waits_at_its_load():
    _, findings, _ = profiled("product", 128, 256, 64, stages=1)
    assert [(f.code, f.line) for f in findings] == [("exposed-latency", line_of("the product"))]
    assert profiled("product", 128, 256, 64, stages=3)[1] == []


@pytest.mark.slow
def test_larger_tiles_of_a_large_product_are_faster_down_to_the_smallest():
    tiles = [(128, 256, 64, 8), (128, 128, 64, 8), (64, 64, 64, 4), (32, 32, 32, 4)]
    times = [us("product", m, n, k, warps=warps) for m, n, k, warps in tiles]
    assert times == sorted(times)
    assert times[-1] > 2 * times[0]
