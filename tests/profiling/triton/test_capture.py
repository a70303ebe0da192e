"""The user's own launches, as Triton's JIT makes them, for a device that is not there."""

from __future__ import annotations

import math
import os
import shutil
import subprocess

import pytest
import torch
import triton
from support import triton_kernels as kernels

from accelopt_profiling.targets import UnknownTargetError
from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.estimation.autotune import tried_for
from accelopt_profiling.triton.interpreter.work import SECOND
from accelopt_profiling.triton.launch import CapturedLaunch

pytestmark = pytest.mark.triton


def launch_add(n=1000):
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    kernels.add[lambda meta: (triton.cdiv(n, meta["B"]),)](x, y, out, n, B=256, num_warps=8)
    return x, y, out


@pytest.mark.parametrize("target", ["h100", "a100", "b200", "mi300x"])
def test_a_launch_is_what_the_jit_would_have_sent(target):
    with emulated(target) as session:
        launch_add(1024)
    (launch,) = session.launches
    assert isinstance(launch, CapturedLaunch)
    assert launch.name == "add"
    assert launch.file == kernels.__file__
    assert launch.line == kernels.add.fn.__code__.co_firstlineno + 1
    assert launch.grid == (4, 1, 1)
    assert launch.signature == {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "B": "constexpr"}
    assert launch.constants == {"B": 256}
    assert launch.options["num_warps"] == 8
    assert ["tt.divisibility", 16] in [list(a) for value in launch.attrs.values() for a in value]


def test_the_systems_own_program_knows_the_same_gpu():
    command = ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    with emulated("h100"):
        assert subprocess.check_output(command, text=True).startswith("NVIDIA H100")
        assert subprocess.check_output(command, text=True).strip().endswith(", 9.0, [N/A]")
        assert subprocess.run(["nvidia-smi"], capture_output=True, check=True).stdout
        clock, memory = triton.testing.nvsmi(["clocks.max.sm", "memory.total"])
        assert 1000 < clock < 2500
        assert 70_000 < memory < 90_000
        query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader"]
        assert subprocess.check_output(query, text=True).strip() == f"{memory} MiB"
        folder = os.environ["PATH"].split(os.pathsep)[0]
    shutil.rmtree(folder)
    with emulated("h100"):
        assert subprocess.run(["nvidia-smi"], capture_output=True, check=True).stdout
    before = os.environ["PATH"]
    with emulated("mi300x"):
        assert os.environ["PATH"] == before


def test_an_argument_of_one_is_a_constant_as_on_the_device():
    with emulated("h100") as session:
        launch_add(1)
    assert session.launches[0].constants == {"B": 256, "n": 1}


@pytest.mark.parametrize("keeps_results", [False, True])
def test_autotuning_tries_every_configuration_and_runs_none(monkeypatch, keeps_results):
    monkeypatch.setattr(kernels.tuned, "cache_results", keeps_results)
    monkeypatch.setattr(subprocess, "check_output", None)  # no compiler is asked for its version
    with emulated("h100", "execute") as session:
        x = torch.randn(1000, device="cuda")
        kernels.tuned[lambda meta: (triton.cdiv(1000, meta["B"]),)](x, torch.empty_like(x), 1000)
    tried = [e for e in session.executions if e.tuning]
    assert [e.launch.constants["B"] for e in tried] == [128, 256, 512]
    assert not any(e.complete for e in tried)
    assert [launch.constants["B"] for launch in session.launches] == [128]


def test_the_preferred_configuration_wins_in_every_session():
    """An autotuner keeps the timer and the choice of the session that first used it; the next session's must be asked
    all the same, since a member of a package is imported once for the inference and the profile."""
    for block in (256, 512, 128):
        with emulated("h100", "execute") as session:
            tuners = set()

            def prefers(tuner, configuration, block=block, tuners=tuners):
                tuners.add(tuner)
                return configuration.kwargs["B"] == block

            session.driver.prefers = prefers
            x = torch.randn(1000, device="cuda")
            kernels.tuned[lambda meta: (triton.cdiv(1000, meta["B"]),)](x, torch.empty_like(x), 1000)
            assert tuners == {kernels.tuned}
        assert [launch.constants["B"] for launch in session.launches] == [block]
        assert len([e for e in session.executions if e.tuning]) == 3


def test_a_compiled_kernel_tells_its_registers_and_launches():
    with emulated("h100", "execute") as session:
        x = torch.randn(256, device="cuda")
        out = torch.empty_like(x)
        kernel = kernels.add.warmup(x, x, out, 256, B=256, grid=(1,))
        kernel._init_handles()
        assert 0 < kernel.n_regs <= 255
        assert kernel.metadata.shared == 0
        kernel[(1, 1, 1)](x, x, out, 256, 256)
    assert torch.equal(out, 2 * x)
    assert len(session.launches) == 1


def test_torch_code_for_a_gpu_runs_on_the_cpu():
    with emulated("h100"):
        x = torch.randn(4, device="cuda")
        y = torch.ones(4).cuda().to("cuda:0").to(torch.device("cuda"))
        assert x.is_cuda
        assert str(y.device) == "cuda:0"
        assert torch.cuda.is_available()
        assert torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_properties(0).multi_processor_count == 132
        torch.nn.Linear(4, 4).cuda()(x + y).sum().backward()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        assert math.isnan(start.elapsed_time(end) / 5)
        assert int(100 / start.elapsed_time(end)) == 0
        assert math.isnan(triton.testing.do_bench(lambda: x + y))
    assert not torch.cuda.is_available()
    assert torch.ones(1).device.type == "cpu"
    assert not torch.ones(1).is_cuda


def test_a_generator_of_the_gpu_draws_on_the_cpu():
    with emulated("h100"):
        drawn = [
            torch.randn(4, device="cuda", generator=torch.Generator("cuda").manual_seed(3)) for _ in "ab"
        ]
        assert isinstance(torch.default_generator, torch.Generator)
    assert torch.equal(*drawn)


def test_uninitialised_memory_is_poisoned():
    with emulated("h100", "execute"):
        assert torch.empty(3, device="cuda").isnan().all()
        assert (torch.ones(3).new_empty(3, dtype=torch.int8) == 127).all()


def test_only_what_the_sample_wrote_is_known():
    with emulated("h100", sample=4) as session:
        x, y, out = launch_add(100_000)
        mask = session.coverage.known(out)
        assert torch.equal(out[mask], (x + y)[mask])
        assert out[~mask].isnan().all()
        again = torch.empty_like(out)
        kernels.add[(391,)](out, out, again, 100_000, B=256)
        both = session.coverage.known(again)
    assert 4 * 256 <= int(mask.sum()) <= 5 * 256
    assert torch.equal(mask, both)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_what_the_sample_did_not_write_is_not_a_number_in_every_width(dtype):
    with emulated("h100", sample=4) as session:
        x = torch.ones(100_000, device="cuda")
        out = torch.empty(100_000, device="cuda", dtype=dtype)
        kernels.convert[(391,)](x, out, 100_000, B=256)
        session.coverage.poison([out])
        mask = session.coverage.known(out)
    assert (out[mask].float() == 1).all()
    assert out[~mask].float().isnan().all()


def test_a_partly_known_input_makes_the_result_unknown():
    with emulated("h100", sample=4) as session:
        _, _, out = launch_add(100_000)
        total = torch.zeros(1, device="cuda")
        kernels.accumulate[(2,)](out, total, B=256)
        assert not session.coverage.known(total).any()


def test_a_sum_over_a_sample_of_programs_is_not_known():
    with emulated("h100", sample=4) as session:
        total = torch.zeros(1, device="cuda")
        kernels.accumulate[(100,)](torch.ones(6400, device="cuda"), total, B=64)
        assert not session.coverage.known(total).any()


def test_a_launch_that_fits_the_work_runs_in_full():
    with emulated("h100", sample=4, whole_work=30 * SECOND) as session:
        x, y, out = launch_add(10_000)
    assert session.executions[0].complete
    assert session.coverage.known(out) is None
    assert torch.equal(out, x + y)


def test_errors_are_kept_and_the_code_goes_on():
    with emulated("h100") as session:
        x = torch.randn(32, device="cuda")
        kernels.raises[(1,)](x, torch.empty_like(x), B=32)
        kernels.reads_past_end[(1,)](x, torch.empty_like(x), 32, B=32)
        launch_add()
    failed, outside, fine = session.executions
    assert isinstance(failed.error, AssertionError)
    (fault,) = outside.faults
    assert (fault.operation, fault.tensor, fault.element, fault.lanes) == ("load", "x", 32, 5)
    assert fine.error is None
    assert fine.faults == []


def test_unknown_targets_are_named():
    with pytest.raises(UnknownTargetError, match="h100"), emulated("gtx9000"):
        pass


def test_a_compiled_kernel_may_be_launched_without_its_constants():
    with emulated("h100") as session:
        x = torch.randn(1024, device="cuda")
        kernel = kernels.add[(4,)](x, x, torch.empty_like(x), 1000, B=256)
        kernel[(4, 1, 1)](x, x, torch.empty_like(x), 1000)
    first, second = session.launches
    assert first.args[3:] == second.args[3:] == (1000, 256)


def plot_of_double(sizes, broken_from=1 << 30):
    """Return a benchmark with one line that launches an autotuned kernel and one that does not."""

    def run(n, provider):
        x = torch.randn(n, device="cuda")
        if provider == "torch":
            return x + x
        out = torch.empty_like(x)
        kernels.tuned[lambda meta: (triton.cdiv(n, meta["B"]),)](x, out, n)
        if n >= broken_from:
            raise RuntimeError("not on zeros")
        return None

    lines = {"line_arg": "provider", "line_vals": ["triton", "torch"], "line_names": ["a", "b"]}
    return triton.testing.perf_report(
        triton.testing.Benchmark(x_names=["n"], x_vals=sizes, plot_name="p", args={}, **lines)
    )(run)


@pytest.mark.parametrize(
    ("mode", "sizes", "launched"),
    [
        ("capture", [256, 4096, 1024], [256, 4096]),
        ("capture", [4096, 256], [4096]),
        ("execute", [256, 4096], [256]),
    ],
)
def test_a_plot_is_run_at_its_first_size_and_for_its_cost_at_its_largest(mode, sizes, launched):
    with emulated("h100", mode) as session:
        plot_of_double(sizes).run(print_data=True)
    ran = [e for e in session.executions if not e.tuning]
    assert [e.launch.args[2] if e.launch.args else 256 for e in ran] == launched
    if len(launched) > 1:
        tried = tried_for(ran[-1], session.executions)
        assert [t.launch.grid[0] for t in tried] == [32, 16, 8]
        assert ran[-1].launch.args[0].count_nonzero() == 0 < ran[0].launch.args[0].count_nonzero()


def test_what_the_largest_size_of_a_plot_raises_tells_nothing():
    with emulated("h100") as session:
        plot_of_double([256, 4096], broken_from=4096).run()
    assert [launch.args[2] for launch in session.launches] == [256, 4096]


def test_a_file_that_runs_itself_does_not_wait_for_large_products():
    with emulated("h100", lenient=True) as session:
        a, b = torch.ones(2048, 1024, device="cuda"), torch.ones(1024, 4096, device="cuda")
        assert torch.equal(a[:2] @ b[:, :3], torch.full((2, 3), 1024.0))
        assert not session.coverage.sampled
        product = torch.softmax(a @ b, dim=-1)
        assert (product.shape, product.dtype, product.is_cuda) == ((2048, 4096), torch.float32, True)
        assert session.coverage.sampled
        places = torch.ones(9 << 20, dtype=torch.int64, device="cuda") + 1
        assert places[-1] == 2
        torch.testing.assert_close(product, a[:, :1] + b[:1])
    with emulated("h100") as session:
        assert (a[:64] @ b)[0, 0] == 1024


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (torch, "allclose"),
        (torch, "equal"),
        (torch.testing, "assert_close"),
        (triton.testing, "assert_close"),
    ],
)
@pytest.mark.parametrize("off", [0.0, 1.0])
def test_a_files_own_comparison_is_made_of_what_a_sample_of_the_programs_wrote(owner, name, off):
    with emulated("h100", sample=4, lenient=True) as session:
        x, y, out = launch_add(1 << 14)
        failed = False
        try:
            failed = getattr(owner, name)(out, x + y + off) is False
        except AssertionError:
            failed = True
    assert session.coverage.sampled
    assert (failed, session.own_failure) == (bool(off), bool(off))
    ((compared, of),) = session.own_checks
    assert (compared, of) == (5 * 256, 1 << 14)


def test_code_that_asks_torch_for_its_accelerator_meets_the_gpu():
    before = torch.get_device_module()
    with emulated("h100"):
        assert torch.get_device_module() is torch.get_device_module("cuda") is torch.cuda
        assert torch.get_device_module("cpu") is torch.cpu
        assert torch.accelerator.is_available()
        assert torch.accelerator.current_accelerator().type == "cuda"
        with torch.get_device_module().device(torch.empty(1, device="cuda").device):
            torch.accelerator.synchronize()
    assert torch.get_device_module() is before


@pytest.mark.parametrize("device_types", [None, "cuda"])
def test_an_operator_of_the_user_launches_for_the_gpu_in_every_session(device_types):
    with emulated("h100") as session:

        @torch.library.custom_op(f"captured::add_{device_types}", mutates_args=(), device_types=device_types)
        def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
            kernels.add[(1,)](x, y, out, x.numel(), B=256)
            return out

        add(torch.randn(100, device="cuda"), torch.randn(100, device="cuda"))
    with emulated("a100") as later:
        add(torch.randn(50, device="cuda"), torch.randn(50, device="cuda"))
    assert len(session.launches) == len(later.launches) == 1
