"""Infer the problem of a file: guessed from its syntax, run on a host in a sandbox and repaired."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from accelopt_profiling.hosts.host import Host, JobFailedError
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import Job, Limits, Step
from accelopt_profiling.kernels import Kernel, KernelSource
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.discovery.template import problem_template
from accelopt_profiling.problems.inference.entries import entry_candidates
from accelopt_profiling.problems.inference.guess import guess_call
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem
from accelopt_profiling.problems.inference.problem_text import problem_text
from accelopt_profiling.problems.inference.usage import function_uses
from accelopt_profiling.source_text import syntax_of

#: Importing a library takes its time on a busy machine, besides the tries themselves.
_IMPORT_SECONDS = 60.0


async def infer_problem(
    host: Host, file: KernelSource, kernels: Sequence[Kernel], target: str, limits: Limits
) -> InferredProblem:
    """Return inputs with which ``kernels`` of ``file`` run, or the best that were found: ``remaining`` says what still
    goes wrong. Where the file cannot even be loaded they are guessed from its syntax.

    Raises:
        HostUnreachableError: the host cannot be reached or was lost.
    """
    params = InferParams(list(kernels), target)
    limits = replace(limits, seconds=max(limits.seconds, 2 * params.cpu_seconds + _IMPORT_SECONDS))
    nki = kernels[0].dialect == "nki"
    step = Step("nki.infer" if nki else "infer", "numpy" if nki else "torch", to_plain(params), limits)
    job = Job(job_files(file, ship_imports=host.remote), [step])
    best: InferredProblem | None = None
    try:
        async with contextlib.aclosing(host.run(job)) as messages:
            async for message in messages:
                best = from_plain(InferredProblem, message.value)
    except JobFailedError as failed:
        why = failed.error.message
        return best or guessed(file, kernels[0], why)
    return best or guessed(file, kernels[0], "the host gave no answer")


def guessed(file: KernelSource, kernel: Kernel, why: str) -> InferredProblem:
    """Return a problem from the file's syntax alone: nothing is run.

    ``why`` is the reason, which it states.
    """
    if kernel.dialect == "nki":
        return InferredProblem(problem_template(file.text, kernel, why), kernel.name, remaining=why)
    tree = syntax_of(file.text)
    name = kernel.name.split("#")[0].split(".")[-1]
    functions = function_uses(tree, {name})
    entries = [e for e in entry_candidates(tree, [name]) if e.function in functions]
    if not entries:
        called = f'"""Inputs of {name}: no function of the file launches it."""\n\nentry = "{name}"\n\n\n'
        return InferredProblem(f"{called}def get_inputs():\n    return []\n", name, remaining=why)
    call = guess_call(file.text, entries[0], functions)
    return InferredProblem(problem_text(call, why), call.entry, remaining=why)
