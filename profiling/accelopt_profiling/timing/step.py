"""The step that times a file's Triton kernels on the host's GPU.

Not yet run on a device: written against Triton's launch hooks and torch's events, tested with stand-ins for both.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from accelopt_profiling.jobs import StepError
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.load import load_problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.timing.launches import LaunchTimer
from accelopt_profiling.timing.samples import latency
from accelopt_profiling.worker.step import StepContext, StepFailed
from accelopt_profiling.worker.usercode import load_module, user_errors


@dataclass(frozen=True)
class TimeParams:
    """``warm_runs`` runs are not counted; then at least ``least_runs`` and for about ``seconds`` they are."""

    kernels: list[Kernel]
    problem: ProblemRef
    seed: int = 0
    warm_runs: int = 5
    least_runs: int = 20
    seconds: float = 2.0


def time_launches(context: StepContext, params: TimeParams) -> dict[str, Any]:
    """Latencies by kernel, measured with events around each launch; L2 is flushed before every run.

    Raises:
        StepFailed: there is no GPU, or the user's code failed.
    """
    import torch
    from triton import knobs

    if not torch.cuda.is_available():
        raise StepFailed(StepError("unsupported", "torch sees no GPU on this host, so nothing was timed."))
    timer = LaunchTimer(lambda: torch.cuda.Event(enable_timing=True), torch.cuda.synchronize)
    with user_errors(context):
        module = load_module(context)
        problem = load_problem(context, params.problem, module)
        inputs = problem.inputs(params.seed)
        for _ in range(params.warm_runs):
            problem.run(module, inputs)
    scratch = torch.empty(2 * _l2_bytes(torch), dtype=torch.int8, device="cuda")
    knobs.runtime.launch_enter_hook.add(timer.enter)
    knobs.runtime.launch_exit_hook.add(timer.exit)
    samples: dict[str, list[float]] = {}
    end = time.monotonic() + params.seconds
    runs = 0
    while runs < params.least_runs or time.monotonic() < end:
        scratch.zero_()
        torch.cuda.synchronize()
        with user_errors(context):
            problem.run(module, inputs)
        for name, total in timer.finish().items():
            samples.setdefault(name, []).append(total)
        runs += 1
    wanted = {k.name.split("#")[0].rpartition(".")[2]: k.name for k in params.kernels}
    timed = {wanted[n]: to_plain(latency(s)) for n, s in samples.items() if n in wanted}
    return {"timings": timed, "device": torch.cuda.get_device_name(), "runs": runs}


def _l2_bytes(torch: Any) -> int:
    return int(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0) or 64 << 20)
