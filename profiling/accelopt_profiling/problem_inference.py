"""Infer the problem of a file: guessed from its syntax, and for Triton run on a host in a sandbox and repaired."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from accelopt_profiling.hosts.host import Host, JobFailedError
from accelopt_profiling.jobs import Job, Limits, Step
from accelopt_profiling.kernel_file import KernelFile
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.discovery.template import problem_template
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem, guessed_problem

#: Importing a library takes its time on a busy machine, besides the tries themselves.
_IMPORT_SECONDS = 60.0


async def infer_problem(
    host: Host, file: KernelFile, kernels: Sequence[Kernel], target: str, limits: Limits
) -> InferredProblem:
    """Return inputs with which ``kernels`` of ``file`` run, or the best that were found: ``remaining`` says what still
    goes wrong. Where the file cannot even be loaded they are guessed from its syntax.

    Raises:
        HostUnreachableError: the host cannot be reached or was lost.
    """
    if kernels[0].dialect == "nki":
        return InferredProblem(problem_template(file.text, kernels[0]), kernels[0].name)
    params = InferParams(list(kernels), target)
    limits = replace(limits, seconds=max(limits.seconds, 2 * params.cpu_seconds + _IMPORT_SECONDS))
    job = Job(file.source(ship_imports=host.remote), [Step("infer", "torch", to_plain(params), limits)])
    best: InferredProblem | None = None
    try:
        async with contextlib.aclosing(host.run(job)) as messages:
            async for message in messages:
                best = from_plain(InferredProblem, message.value)
    except JobFailedError as failed:
        why = failed.error.message
        return best or guessed_problem(file.text, kernels[0], why)
    return best or guessed_problem(file.text, kernels[0], "the host gave no answer")


def guessed(file: KernelFile, kernel: Kernel) -> InferredProblem:
    """A problem from the file's syntax alone: nothing is run."""
    if kernel.dialect == "nki":
        return InferredProblem(problem_template(file.text, kernel), kernel.name)
    return guessed_problem(file.text, kernel, "nothing of an untrusted workspace is run")


def in_words(problem: InferredProblem) -> str:
    """What became of a problem that was written: what it launches, and what to do about it."""
    if problem.complete:
        launched = ", ".join(problem.launched)
        return f"It runs {problem.entry}, which launches {launched}; results are not checked without a `reference`."
    if problem.launched:
        launched = ", ".join(problem.launched)
        return f"{problem.entry} launches {launched} with it, but {problem.remaining}. Edit its inputs."
    why = f" ({problem.remaining})" if problem.remaining else ""
    return f"{problem.entry} was not run with it{why}. Edit its inputs."
