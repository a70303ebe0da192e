"""Has a model write the first kernel for a PyTorch module, as STARK does, before a search can begin."""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from accelopt_agent.model.client import ModelCallError, ModelQuery, query_model
from accelopt_agent.model.ledger import query_booked
from accelopt_agent.model.prompt_templates import fenced, render
from accelopt_agent.model.rewrite import fenced_blocks
from accelopt_agent.model.team import ModelTeam, Role
from accelopt_agent.search.budget import Meter
from accelopt_profiling.source_text import syntax_of


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
                query, role, team.of(role), system, user, meter.book, backoff_seconds
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
