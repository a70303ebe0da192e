"""Has a model write the first kernel of a task that has only its PyTorch problem; what was paid for is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.evaluation.host_evaluation import HostGate
from accelopt_agent.model.first_kernel import write_first_kernel
from accelopt_agent.model.team import ModelTeam
from accelopt_agent.request import Budget, OptimizeRequest
from accelopt_agent.search.budget import Meter
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.jobs import Limits
from accelopt_profiling.plain import from_plain, to_plain
from nkibench.kernel_sets.tasks import SetTask

#: The name of the file that a model writes, and of the one that keeps what came of it.
KERNEL, KEPT = "kernel.py", "first_kernel.json"


@dataclass(frozen=True)
class Written:
    """``text`` is the first right file (None: there was none), ``fault`` what was wrong with the last one that was not;
    ``left`` is the budget that the search has after it."""

    text: str | None
    attempts: int
    fault: str
    left: Budget
    tokens: int = 0
    money: float | None = None


async def first_kernel(
    host: Host, task: SetTask, team: ModelTeam, budget: Budget, target: str, folder: Path, limits: Limits
) -> Written:
    """Return the first right kernel for the task, from ``folder`` where it was written before. Every attempt counts as
    a candidate of ``budget``.

    Raises:
        EvaluatorLostError, HostUnreachableError: the host was lost. OSError: the folder cannot be written.
    """
    file = folder / KEPT
    if file.exists():
        try:
            return from_plain(Written, json.loads(file.read_text("utf-8")))
        except (ValueError, TypeError, KeyError):
            file.unlink()  # of another version
    meter = Meter(budget)
    reference = task.files[task.problem]

    async def fault_of(text: str) -> str:
        return await _fault(host, task, text, target, folder, limits)

    first = await write_first_kernel(team, reference, target, fault_of, meter, attempts=budget.candidates)
    tokens = meter.tokens_in + meter.tokens_out
    rest = replace(
        budget,
        candidates=max(0, budget.candidates - first.attempts),
        tokens=None if budget.tokens is None else max(0, budget.tokens - tokens),
    )
    fault = first.faults[-1] if first.faults else ""
    written = Written(first.text, first.attempts, fault, rest, tokens, meter.money)
    if first.text is not None:
        file.write_text(json.dumps(to_plain(written)), "utf-8")
    return written


async def _fault(host: Host, task: SetTask, text: str, target: str, folder: Path, limits: Limits) -> str:
    """Return what the gate has against a file, as one line; "" where it accepts it."""
    examined = examine(folder / KERNEL, text, project_root=folder, problem=task.problem)
    request = OptimizeRequest(examined, target, limits=limits)
    if not examined.launched:
        errors = [f.message for f in examined.findings if f.severity == "error"]
        return "; ".join(errors) or "The file launches no Triton kernel."
    try:
        verdict, _ = await HostGate(host, request).check(text, examined.launched[0].name)
    except CostUnavailableError as error:
        return f"{error.code}: {error}"
    return "; ".join(
        f"{reason.code}: {reason.message}" for reason in verdict.reasons[:2] if not verdict.accepted
    )
