"""Time a kernel file on a host, alone or against another in one session: the job and its answer."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from accelopt_profiling.hosts.host import Host
from accelopt_profiling.jobs import Job, JobFiles, Limits, Step
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.timing.check_step import CheckedRuns, CheckTimedParams
from accelopt_profiling.timing.measure import TimingPlan
from accelopt_profiling.timing.session import TimingSession
from accelopt_profiling.timing.time_step import TimeParams


async def time_on(
    host: Host,
    source: JobFiles,
    kernels: Sequence[Kernel],
    problem: ProblemRef,
    baseline: str | None = None,
    plan: TimingPlan | None = None,
    limits: Limits | None = None,
) -> TimingSession:
    """Time the kernel file of ``source``.

    With the text of a ``baseline`` the session has their ``comparison``.

    Raises:
        HostUnreachableError: the host cannot be reached.
        JobFailedError: there is no GPU ("unsupported"), or one of the files failed.
        ValueError: the host's answer cannot be read.
    """
    job = timing_job(source, kernels, problem=problem, baseline=baseline, plan=plan, limits=limits)
    timed: Any = None
    checked: Any = None
    async with contextlib.aclosing(host.run(job)) as messages:
        async for message in messages:
            if message.final and message.step == "time":
                timed = message.value
            elif message.final:
                checked = message.value
    session = from_plain(TimingSession, timed)
    return dataclasses.replace(session, checked=from_plain(CheckedRuns, checked))


def timing_job(
    source: JobFiles,
    kernels: Sequence[Kernel],
    problem: ProblemRef,
    baseline: str | None = None,
    plan: TimingPlan | None = None,
    limits: Limits | None = None,
) -> Job:
    """Return the job that ``time_on`` runs.

    The baseline lies beside the kernel file, so that it finds the same imports.
    """
    path = None
    if baseline is not None:
        path = str(PurePosixPath(source.kernel).with_name("accelopt_baseline.py"))
        source = dataclasses.replace(source, files={**source.files, path: baseline})
    params = TimeParams(list(kernels), problem, baseline=path, plan=plan or TimingPlan())
    return Job(source, timing_steps(params, limits or Limits()))


def timing_steps(params: TimeParams, limits: Limits) -> list[Step]:
    """Return the steps that time and then compare what the timed runs returned with the reference, for a
    job."""
    checking = CheckTimedParams(params.problem, params.seed, params.baseline)
    return [
        Step("time", "torch", to_plain(params), limits, device=True),
        Step("time.check", "torch", to_plain(checking), limits, device=True),
    ]
