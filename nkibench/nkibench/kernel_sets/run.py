"""Runs the kernels of a set through profile, gate and search."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.evaluation.host_evaluation import HostGate
from accelopt_agent.events import Event
from accelopt_agent.model.team import ModelTeam
from accelopt_agent.optimize import optimize
from accelopt_agent.request import Budget, OptimizeRequest
from accelopt_agent.search_record import SearchRecord
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import Limits, MeasureOptions
from accelopt_profiling.measurement import Latency
from accelopt_profiling.profiler import ProfileRequest, profile
from accelopt_profiling.pytorch.reference_step import reference_times
from nkibench.journal import Journal
from nkibench.kernel_sets.first_kernel import KERNEL, Written, first_kernel
from nkibench.kernel_sets.tasks import SetTask
from nkibench.metrics import SetResult
from nkibench.run import largest_error
from nkibench.searching import SearchVariant


@dataclass(frozen=True)
class SetPlan:
    """How a set is run: for ``target``, with work and results below ``folder``.

    With a ``budget`` each kernel that passes is optimized by the ``variant``'s plan. The memory is the run's own: a
    kernel learns from what was checked on those before it.
    """

    target: str
    folder: Path
    limits: Limits
    budget: Budget | None = None
    memory: Memory | None = None
    team: ModelTeam | None = None
    variant: SearchVariant = field(default_factory=SearchVariant)

    @property
    def options(self) -> str:
        """What a result depends on besides the kernel and its problem."""
        team = self.whole_team
        search = "" if self.budget is None else f"{self.budget} {team.setup if team else 'rules'}"
        return f"{self.target} {search}{f' {self.variant.plan}' if self.budget is not None else ''}"

    @property
    def whole_team(self) -> ModelTeam | None:
        """The team, or what the variant leaves of it."""
        return self.variant.team_of(self.team)

    def search(self, request: OptimizeRequest, host: Host) -> AsyncGenerator[Event, None]:
        """Return the search for faster versions."""
        team = self.whole_team
        return optimize(replace(request, plan=self.variant.plan), host, self.memory, model=team)


async def run_set(host: Host, tasks: Iterable[SetTask], plan: SetPlan) -> AsyncGenerator[SetResult, None]:
    """Yield the results in the tasks' order.

    Those that the folder's journal has are told at once.

    Raises:
        HostUnreachableError, EvaluatorLostError: the host was lost. OSError: the folder cannot be written.
    """
    journal = Journal(plan.folder / "journal.jsonl", SetResult)
    for task in tasks:
        key = _key(task, plan)
        result = journal.get(key)
        if result is None or result.status == "failed":  # which may have been the machine's fault
            result = replace(await _one(host, task, plan), key=key, search=plan.variant.name)
            journal.add(result)
        yield result


def _key(task: SetTask, plan: SetPlan) -> str:
    digest = hashlib.sha256(f"{plan.options}\0{task.fault}".encode())
    for name, text in sorted(task.files.items()):
        digest.update(f"\0{name}\0{text}".encode())
    for name, stored in sorted(task.stored.items()):
        digest.update(f"\0{name}\0{stored.stat().st_size}".encode())
    return f"{task.group} {task.name} {digest.hexdigest()[:16]}"


async def _one(host: Host, task: SetTask, plan: SetPlan) -> SetResult:
    if task.fault:
        return SetResult(task.name, task.group, "absent", task.fault)
    folder = plan.folder / "tasks" / hashlib.sha256(f"{task.group} {task.name}".encode()).hexdigest()[:12]
    for name, text in task.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    for name, stored in task.stored.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(stored, folder / name)
    written: Written | None = None
    if not task.kernel:
        if plan.team is None or plan.budget is None:
            why = "it has no kernel; with --optimize a model writes the first one"
            return SetResult(task.name, task.group, "absent", why)
        written = await first_kernel(
            host,
            task,
            team=plan.team,
            budget=plan.budget,
            target=plan.target,
            folder=folder,
            limits=plan.limits,
        )
        if written.text is None:
            why = f"no right kernel in {written.attempts} attempts; the last: {written.fault}"
            return SetResult(
                task.name, task.group, "failed", why, attempts=written.attempts, tokens=written.tokens,
                money=written.money,
            )  # fmt: skip
        task = replace(task, kernel=KERNEL, files={**task.files, KERNEL: written.text})
        (folder / KERNEL).write_text(written.text, "utf-8")
    kernel = folder / task.kernel
    budget = plan.budget if written is None else written.left
    examined = examine(kernel, task.files[task.kernel], project_root=folder, problem=task.problem)
    request = OptimizeRequest(
        examined, plan.target, budget=budget or Budget(), resume=True, limits=plan.limits
    )
    result = await _examined(host, task, request, plan)
    if result.status == "passed" and budget is not None and budget.candidates:
        result = await _searched(host, result, request, plan)
    if written is not None:
        spent = [m for m in (result.money, written.money) if m is not None]
        result = replace(
            result, attempts=written.attempts, tokens=result.tokens + written.tokens,
            money=sum(spent) if spent else None,
        )  # fmt: skip
    return result


async def _examined(host: Host, task: SetTask, request: OptimizeRequest, plan: SetPlan) -> SetResult:
    """Return whether the gate accepts the kernel as it is, its time, and PyTorch's own."""
    examined = request.file
    profile_request = ProfileRequest(
        examined,
        {"triton": plan.target, "nki": plan.target},
        limits=plan.limits,
        options=MeasureOptions(detail=False),
        background=True,
    )
    if not examined.launched:
        return SetResult(
            task.name, task.group, "absent", "its file has no Triton or NKI kernel that is launched"
        )
    if examined.problem.ref is None:
        why = "; ".join(f.message for f in examined.problem.findings) or "its problem was not found"
        return SetResult(task.name, task.group, "failed", why)
    async with aclosing(profile(host, profile_request)) as growing:
        last = [measurement async for measurement in growing][-1]
    timed = [k for k in last.kernels if k.latency.us is not None]
    reason = None if timed else last.refusal()
    measured = max(timed, key=lambda k: k.latency.us or 0.0, default=None)
    whole = sum(k.latency.us or 0.0 for k in timed) or None
    latency = measured.latency if measured else Latency()
    percent = measured.percent_of_peak if measured else None
    name = measured.name if measured else examined.launched[0].name
    try:
        verdict, _ = await HostGate(host, request).check(request.text, name)
    except CostUnavailableError as error:
        return SetResult(
            task.name, task.group, status="failed", detail=str(error), latency=latency, best=latency
        )
    if not verdict.accepted:
        why = " ".join(reason.message for reason in verdict.reasons[:2])
        code = verdict.reasons[0].code if verdict.reasons else ""
        return SetResult(
            task.name, task.group, status="wrong", detail=why, latency=latency, best=latency, code=code
        )
    source = job_files(examined, ship_imports=host.remote)
    torch = await reference_times(
        host, source, problem=examined.problem.ref, target=plan.target, limits=plan.limits
    )
    detail = torch.why if reason is None else reason.message
    return SetResult(
        task.name,
        task.group,
        status="passed",
        detail=detail,
        latency=latency,
        best=latency,
        percent=percent,
        best_percent=percent,
        eager=torch.eager,
        compiled=torch.compiled,
        whole_us=whole,
        relative_error=largest_error(verdict),
        absolute_error=largest_error(verdict, "max_abs"),
    )


async def _searched(host: Host, result: SetResult, request: OptimizeRequest, plan: SetPlan) -> SetResult:
    """Return the result with the fastest version that a search checked."""
    record = SearchRecord()
    async with aclosing(plan.search(request, host)) as events:
        async for event in events:
            record.add(event)
    outcome = replace(result, tried=record.tried)
    if record.end is not None:
        used = record.end.usage
        outcome = replace(outcome, money=used.money, tokens=used.tokens_in + used.tokens_out)
    best = max(record.suggestions, key=_saved, default=None)
    if best is None:
        return outcome
    costliest = next(iter(record.baselines.values()), None)
    percent = result.percent if costliest is None else costliest.percent_of_peak
    baseline = record.baselines.get(best.kernel, costliest)
    # Against the original's peak: what has to be done stays the same, so the share grows as the time falls.
    gain = best.slow.us / best.fast.us if best.slow.us and best.fast.us else None
    after = percent * gain if percent is not None and gain is not None else None
    slow = result.latency if baseline is None else baseline.latency
    gained = (slow.us or 0.0) - (best.fast.us or 0.0)
    whole = outcome.whole_us - gained if outcome.whole_us else None
    return replace(
        outcome,
        latency=slow,
        best=best.fast,
        steps=best.steps,
        percent=percent,
        best_percent=after,
        whole_us=whole,
        text=best.text,
    )


def _saved(suggestion: Suggestion) -> float:
    """Return the microseconds by which a suggestion shortens the task: kernels of one task differ in what they cost."""
    return (suggestion.slow.us or 0.0) - (suggestion.fast.us or 0.0)
