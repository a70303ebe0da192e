"""Replaces what would need a GPU: Triton's driver, compiler, tuner and benchmarks, and torch's device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import triton
import triton.testing

from accelopt_profiling.targets import GpuTarget, load_gpu
from accelopt_profiling.triton.capture.benchmarks import run_once, sizes_of
from accelopt_profiling.triton.capture.dispatch import backward_on_gpu, operators_on_cpu
from accelopt_profiling.triton.capture.driver import DeferredKernel, StandInDriver
from accelopt_profiling.triton.capture.inductor import inductor_kernels
from accelopt_profiling.triton.capture.nvidia_smi import nvidia_smi
from accelopt_profiling.triton.capture.session import CaptureSession, LaunchExecution, Mode, interpreter
from accelopt_profiling.triton.capture.torch_device import CublasOnCpu, gpu_on_cpu
from accelopt_profiling.triton.interpreter.coverage import SampleCoverage
from accelopt_profiling.triton.interpreter.sampling import InterpretationPlan
from accelopt_profiling.triton.interpreter.work import WorkMeter
from accelopt_profiling.triton_adapter.runtime import (
    Autotuner,
    active_driver,
    emulation_places,
    real_compiler,
)


def _lenient(comparison: Callable[..., Any], session: CaptureSession) -> Callable[..., Any]:
    """Return a comparison of what is known: once only a sample of some launch's programs ran, of the elements that they
    wrote. What cannot be told so succeeds, and is counted."""

    def compare(*arguments: Any, **options: Any) -> Any:
        if not session.coverage.sampled:
            return comparison(*arguments, **options)
        skipped, session.device.skipped = session.device.skipped, None  # all of the comparison is computed
        try:
            pair = None if session.uncomputed else _known_of_both(session.coverage, arguments[:2])
            session.own_checks.append((len(pair[0]) if pair else 0, _size(arguments)))
            agrees = True if pair is None else comparison(*pair, *arguments[2:], **options)
            session.own_failure = session.own_failure or agrees is False
            return agrees
        except AssertionError:
            session.own_failure = True
            raise
        finally:
            session.device.skipped = skipped

    return compare


def _known_of_both(coverage: SampleCoverage, pair: Sequence[Any]) -> tuple[Any, Any] | None:
    """Return the elements of two tensors that are known in both.

    None where there are none, or nobody can tell.
    """
    if len(pair) < 2 or not all(isinstance(t, torch.Tensor) and t.is_floating_point() for t in pair):
        return None
    left, right = pair
    if left.shape != right.shape:
        return None
    masks = [m for t in pair if (m := coverage.known(t)) is not None]
    mask = torch.stack([*masks, ~left.isnan(), ~right.isnan()]).all(0)
    return (left[mask], right[mask]) if mask.any() else None


def _size(arguments: Sequence[Any]) -> int:
    return next((t.numel() for t in arguments if isinstance(t, torch.Tensor)), 0)


@contextmanager
def emulated(
    target: str | GpuTarget,
    mode: Mode = "capture",
    *,
    sample: int | None = 4,
    whole_work: int = 0,
    hollow: bool = False,
    lenient: bool = False,
    count: bool = True,
    observe: Callable[[LaunchExecution], None] | None = None,
    plan: InterpretationPlan | None = None,
    loop_work: int | None = None,
) -> Iterator[CaptureSession]:
    """Emulate ``target`` in this process until the block ends.

    "execute" interprets every program of every launch at once, so that the user's code gets real results; an error in
    a kernel, or an access out of bounds, is raised from the launch. "capture" interprets ``sample`` programs of each
    launch and counts them, or all of a launch that fits into what is left of ``whole_work`` (in elements, see ``work``)
    for the session; errors are kept in ``session.executions``. From ``loop_work`` of a launch on, some iterations of
    its long loops stand for all, so that what it writes is not known. ``hollow`` replaces random draws by zeros.
    ``lenient`` computes nothing on large tensors, and lets comparisons look at what is known, once something is only
    partly. ``observe`` is called with each launch. With a ``plan`` "capture" interprets what it says, and counts
    nothing.

    Raises:
        UnknownTargetError: there is no such GPU.
    """
    gpu = load_gpu(target) if isinstance(target, str) else target
    session = CaptureSession(
        gpu,
        mode,
        sample=sample,
        whole_work=whole_work,
        count=count,
        hollow=hollow,
        loop_work=loop_work,
        observe=observe,
        plan=plan,
    )
    session.driver = StandInDriver(gpu, session.record)
    real_compile = real_compiler()

    def deferred(src: Any, target: Any = None, options: Any = None, **rest: Any) -> DeferredKernel:
        return DeferredKernel(
            src, dict(options or {}), lambda: real_compile(src, target=target, options=options, **rest)
        )

    try_one = Autotuner._bench

    def tried(tuner: Any, *arguments: Any, config: Any, **rest: Any) -> Any:
        session.tuners[id(tuner)] = tuner
        tuner.__dict__["do_bench"] = session.driver.benchmark_of(
            tuner, config
        )  # kept from another session else
        return try_one(tuner, *arguments, config=config, **rest)

    replaced = emulation_places(
        deferred, tried, run_once=run_once, sizes=sizes_of(session), cublas=CublasOnCpu
    )
    if lenient:
        comparisons = ((torch, "allclose"), (torch, "equal"), (torch.testing, "assert_close"))
        replaced += [
            (o, n, _lenient(getattr(o, n), session))
            for o, n in (*comparisons, (triton.testing, "assert_close"))
        ]

    with ExitStack() as stack:
        stack.callback(session.forget_choices)
        session.device = stack.enter_context(
            gpu_on_cpu(gpu, hollow=hollow, poison=mode == "execute" or not hollow)
        )
        if lenient:
            session.device.skipped = session.skip
        stack.enter_context(backward_on_gpu(session.device))
        stack.enter_context(nvidia_smi(gpu))
        stack.enter_context(inductor_kernels())
        stack.enter_context(operators_on_cpu(session.device))
        for owner, name, value in replaced:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        stack.enter_context(active_driver(session.driver))
        stack.callback(setattr, interpreter().builder, "meter", interpreter().builder.meter)
        interpreter().builder.meter = WorkMeter(most=plan.most if plan is not None else None)
        yield session
