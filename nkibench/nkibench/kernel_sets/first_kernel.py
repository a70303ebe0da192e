"""Has a model write the first kernel of a PyTorch problem, as STARK does.

What was paid for is kept.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.evaluation.host_evaluation import HostGate
from accelopt_agent.model.client import ModelCallError, ModelQuery, query_model
from accelopt_agent.model.ledger import query_booked
from accelopt_agent.model.prompt_templates import fenced, render
from accelopt_agent.model.rewrite import fenced_blocks
from accelopt_agent.model.team import ModelTeam, Role
from accelopt_agent.request import Budget, OptimizeRequest
from accelopt_agent.search.budget import Meter
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.jobs import Limits
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.source_text import syntax_of
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
        return await _fault(host, task, text=text, target=target, folder=folder, limits=limits)

    first = await write_first_kernel(
        team, reference, target=target, check=fault_of, meter=meter, attempts=budget.candidates
    )
    tokens = meter.tokens_in + meter.tokens_out
    rest = replace(
        budget,
        candidates=max(0, budget.candidates - first.attempts),
        tokens=None if budget.tokens is None else max(0, budget.tokens - tokens),
    )
    fault = first.faults[-1] if first.faults else ""
    written = Written(first.text, first.attempts, fault=fault, left=rest, tokens=tokens, money=meter.money)
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


@dataclass(frozen=True)
class FirstKernel:
    """``text`` is the first file that was right, None where none was.

    ``faults`` are what was wrong with each attempt before it.
    """

    text: str | None
    faults: tuple[str, ...] = ()

    @property
    def attempts(self) -> int:
        return len(self.faults) + (self.text is not None)


async def write_first_kernel(
    team: ModelTeam,
    reference: str,
    target: str,
    check: Callable[[str], Awaitable[str]],
    meter: Meter,
    *,
    attempts: int = 8,
    backoff_seconds: float = 1.0,
    query: ModelQuery = query_model,
) -> FirstKernel:
    """Ask the coder for a file with ``ModelNew`` that does what ``Model`` of ``reference`` does, and after each fault
    the debugger for another one. ``check`` returns what is wrong with a file, "" for nothing; ``meter`` books the
    calls. Returns what there is when ``attempts`` are made, the budget is spent or nobody answers.
    """
    system = render("triton/first_kernel", target=target)
    faults: list[str] = []
    last = ""
    while len(faults) < attempts and not meter.model_spent():
        role: Role = "debugger" if last else "coder"
        user = _question(reference, last, faults[-1] if faults else "")
        try:
            answer, _ = await query_booked(
                query,
                role,
                settings=team.of(role),
                system=system,
                user=user,
                book=meter.book,
                backoff_seconds=backoff_seconds,
            )
        except ModelCallError as error:
            faults.append(str(error))
            if error.final:
                break
            continue
        text = module_in(answer)
        if text is None:
            faults.append("The answer holds no Python file with a class ModelNew.")
            continue
        last, fault = text, await check(text)
        if not fault:
            return FirstKernel(text, tuple(faults))
        faults.append(fault)
    return FirstKernel(None, tuple(faults))


def module_in(answer: str) -> str | None:
    """Return the largest block of the answer that is Python and defines ``ModelNew``; None without one."""
    for text in fenced_blocks(answer) or [answer]:
        try:
            body = syntax_of(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in body):
            return text.rstrip() + "\n"
    return None


def _question(reference: str, file: str, error: str) -> str:
    if not file:
        return render("first_kernel_user", reference=fenced(reference))
    return render("first_kernel_again_user", reference=fenced(reference), file=fenced(file), error=error)
