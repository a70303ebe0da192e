"""Ask a host what PyTorch takes for a problem's reference."""

from __future__ import annotations

from contextlib import aclosing

from accelopt_profiling.hosts.host import Host, JobFailedError
from accelopt_profiling.jobs import Job, Limits, Source, Step
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.pytorch.reference_step import TorchParams, TorchTimes


async def reference_times(
    host: Host, source: Source, problem: ProblemRef, target: str, limits: Limits
) -> TorchTimes:
    """Return the times of the reference, measured where the host has a device and estimated for ``target`` elsewhere;
    without times ``why`` says why.

    Raises:
        HostUnreachableError: the host was lost.
    """
    has_device = bool((await host.facts()).devices)
    step = Step("torch", "torch", to_plain(TorchParams(problem, target)), limits, device=has_device)
    try:
        async with aclosing(host.run(Job(source, [step]))) as messages:
            answers = [message.value async for message in messages if message.final]
        return from_plain(TorchTimes, answers[-1])
    except JobFailedError as failed:
        return TorchTimes(why=failed.error.message)
    except (ValueError, IndexError) as error:
        return TorchTimes(why=f"the host's answer cannot be read: {error}")
