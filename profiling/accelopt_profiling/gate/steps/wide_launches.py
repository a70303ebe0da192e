"""Calls at sizes that are not run: whether the target takes what is launched there."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from accelopt_profiling.comparison.saved_values import load_values
from accelopt_profiling.gate.case_files import WIDE, case_folder
from accelopt_profiling.gate.observe.device_answers import device_answers
from accelopt_profiling.gate.step_schemas import CaseCall, StepParams
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.call import perform
from accelopt_profiling.problems.loading.sizes import size_text
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import user_errors

#: Host code may reserve so much more memory in such a call: at wide sizes it may ask for a square of one.
_MEMORY = 1 << 30


def wide_launches(context: StepContext, params: StepParams, module: ModuleType) -> dict[str, str]:
    """Make each call of which only the launches are looked at, and return by its sizes why the target does not take
    them, "" where it does. What does not come to its end is left out.
    """
    faults: dict[str, str] = {}
    for index in range(params.cases):
        folder = case_folder(context, index) / WIDE
        if not (folder / "call").is_dir():
            continue
        case_call = from_plain(CaseCall, load_values(folder / "call")[0])
        with (
            contextlib.suppress(StepFailedError),
            _bounded_memory(),
            _captured(params.target) as (launches, target),
            user_errors(context),
        ):
            perform(module, case_call.call, load_values(folder / "arguments"), context.source.kernel)
            where = ", ".join(size_text(name, size) for name, size in case_call.sizes.items())
            faults[where] = _fault(launches, target)
    return faults


def _fault(launches: list[Any], target: Any) -> str:
    from accelopt_profiling.triton.compilation.compile import launch_problem

    for launch in launches:
        problem = launch_problem(launch, target)
        if problem is not None:
            return f"The kernel {launch.name} {problem.message.removesuffix('.')}."
    return ""


@contextlib.contextmanager
def _captured(target: str) -> Iterator[tuple[list[Any], Any]]:
    """As ``emulation`` of Triton kernels, but launches are kept and compute nothing."""
    from accelopt_profiling.triton.capture.install import emulated
    from accelopt_profiling.triton.capture.session import captured_launch

    launches: list[Any] = []
    with (
        emulated(target, mode="capture", hollow=True, count=False) as session,
        device_answers(int(session.target.get("dram_bytes", 80e9))),
    ):
        driver = session.driver

        def record(*launch: Any) -> None:
            if not driver.tuning:
                launches.append(captured_launch(*launch))

        driver.record = record
        yield launches, session.target


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + _MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
