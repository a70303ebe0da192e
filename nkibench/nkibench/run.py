"""Runs the benchmark: the cost and the verdict of every case, a few at a time, then searches if asked to."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import math
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.measurement import Latency
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.source_text import UnreadableFileError, read_text
from nkibench import measuring
from nkibench.case import BenchmarkCase, BenchmarkCases, Fault
from nkibench.code import cost_hash, toolchain_hash, verdict_hash
from nkibench.journal import Journal
from nkibench.peaks import peak_of_version
from nkibench.result import Status, TaskResult

if TYPE_CHECKING:
    from nkibench.searching import Searching


@dataclass(frozen=True)
class Working:
    """A case is being worked on; ``text`` says what is done."""

    task: str
    text: str


Told = Working | TaskResult


@dataclass(frozen=True)
class BenchmarkPlan:
    """What to run: ``jobs`` cases at a time, for ``target``. With ``searching`` each is optimized too."""

    target: str
    dialect: str = "beta1"
    jobs: int = 1
    searching: Searching | None = None


async def run(
    host: Host, cases: BenchmarkCases, plan: BenchmarkPlan, journal: Journal[TaskResult] | None = None
) -> AsyncGenerator[Told, None]:
    """Work through the cases and tell what happens.

    What the journal knows already is told at once.

    A case that cannot be run becomes a result with the status "failed"; the others go on.

    Raises:
        HostUnreachableError: the host was lost.
        OSError: the journal cannot be written.
    """
    for fault in cases.faults:
        yield _faulty(fault, plan)
    events: asyncio.Queue[Told | BaseException | None] = asyncio.Queue()
    turns = asyncio.Semaphore(plan.jobs)

    async def work(case: BenchmarkCase) -> None:
        async with turns:
            try:
                await _one(host, case, plan=plan, journal=journal, events=events)
            except Exception as error:  # raised again by ``run``, which would wait for ever for a result
                await events.put(error)

    async def everything() -> None:
        await asyncio.gather(*(work(case) for case in cases.ready))
        await events.put(None)

    task = asyncio.create_task(everything())
    try:
        while (event := await events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _one(
    host: Host,
    case: BenchmarkCase,
    plan: BenchmarkPlan,
    journal: Journal[TaskResult] | None,
    events: asyncio.Queue[Any],
) -> None:
    key = key_of(case, plan)
    result = journal.get(key) if journal is not None else None
    if result is None or result.status == "failed":  # what could not be run may have been the machine's fault
        await events.put(Working(case.name, "estimating and checking"))
        result = await examine(host, case, plan, key)
        if journal is not None:
            journal.add(result)
    elif result.gate != verdict_hash():
        await events.put(Working(case.name, "checking again, the gate has changed"))
        result = await judge_again(host, case, result)
        if journal is not None:
            journal.add(result)
    if plan.searching is None:
        await events.put(result)
        return
    search_key = f"{key} {toolchain_hash()[:8]} {plan.searching.key}"
    finished = journal.get(search_key) if journal is not None else None
    if finished is None and result.status == "passed" and result.latency.us is not None:
        async with aclosing(plan.searching.search(host, case, result)) as happening:
            async for text, best in happening:
                if best is None:
                    await events.put(Working(case.name, text))
                    continue
                finished = dataclasses.replace(result, best=best, key=search_key)
        if finished is not None and journal is not None:
            journal.add(finished)
    await events.put(finished or result)


def key_of(case: BenchmarkCase, plan: BenchmarkPlan) -> str:
    """Return what a cost depends on: the texts of kernel and reference, the target, and our emulator and
    figures."""
    digest = hashlib.sha256(cost_hash().encode())
    for path in (case.kernel, case.reference):
        try:
            digest.update(read_text(path).encode())
        except UnreadableFileError as error:
            digest.update(str(error).encode())
        digest.update(b"\0")
    return f"{case.case_name} {plan.target} {digest.hexdigest()[:16]}"


async def examine(host: Host, case: BenchmarkCase, plan: BenchmarkPlan, key: str = "") -> TaskResult:
    """Return the cost and verdict of the case's own kernel.

    Raises:
        HostUnreachableError: the host was lost.
    """
    started = time.monotonic()
    published = case.task.published.get(plan.target) if case.task is not None else None
    result = TaskResult(
        task=case.name, case=case.case_name, target=plan.target, dialect=plan.dialect,
        kernel=str(case.kernel), status="failed", key=key,
        published_ms=published.baseline_ms if published else None,
        published_best=published.best_fraction if published else None,
    )  # fmt: skip
    try:
        cost = await measuring.cost(host, case, plan.target)
        if cost.measurement is None:
            return dataclasses.replace(result, detail=cost.why or "its time could not be found out")
        verdict, receipt = await measuring.judge(host, case, plan.target)
    except (UnreadableFileError, measuring.NoKernelError) as error:
        return dataclasses.replace(result, detail=f"{case.kernel.name}: {error}")
    measured = cost.measurement
    peak = peak_of_version(case, plan.target, measured)
    result = dataclasses.replace(
        result, latency=measured.latency, bound=measured.bound, seconds=time.monotonic() - started,
        peak_us=peak.us if peak else None, peak_bound=peak.bound if peak else "",
        findings=[f"line {f.line}: {f.code}: {f.message}" for f in cost.findings],
    )  # fmt: skip
    return _with_verdict(result, verdict, receipt)


async def judge_again(host: Host, case: BenchmarkCase, result: TaskResult) -> TaskResult:
    """Return the result with what today's gate says of the case's own kernel; its cost stays.

    Raises:
        HostUnreachableError: the host was lost.
    """
    try:
        verdict, receipt = await measuring.judge(host, case, result.target)
    except (UnreadableFileError, measuring.NoKernelError) as error:
        return dataclasses.replace(result, status="failed", detail=f"{case.kernel.name}: {error}")
    return _with_verdict(result, verdict, receipt)


def _with_verdict(result: TaskResult, verdict: Verdict, receipt: Receipt) -> TaskResult:
    status, detail = _status(verdict)
    return dataclasses.replace(
        result, status=status, detail=detail, error=largest_error(verdict), cases=len(verdict.checks),
        receipt=receipt.id, gate=verdict_hash(),
    )  # fmt: skip


def _status(verdict: Verdict) -> tuple[Status, str]:
    if verdict.accepted:
        return "passed", " ".join(r.message for r in verdict.reasons)
    unfinished = ("missing-", "gate-failed", "incomplete", "timeout")
    first = verdict.reasons[0] if verdict.reasons else None
    unknown = verdict.invalid_problem or first is None or first.code.startswith(unfinished)
    status: Status = "failed" if unknown else "wrong"
    return status, " ".join(r.message for r in verdict.reasons[:3])


def largest_error(verdict: Verdict, of: str = "relative") -> float | None:
    """Return the largest relative L2 error of an output on draws of the problem's own distribution, None
    without one; ``of`` names another part of the comparison ("max_abs").

    On others, such as rows of one value, the reference in float32 may itself be far off, and the gate allows for that.
    """
    errors = [
        output["comparison"][of]
        for check in verdict.checks
        if check["distribution"] == "original"
        for output in check.get("outputs", [])
        if isinstance(output["comparison"].get(of), (int, float))
    ]
    return max((float(e) for e in errors if math.isfinite(e)), default=None)


def _faulty(fault: Fault, plan: BenchmarkPlan) -> TaskResult:
    return TaskResult(
        fault.name,
        fault.name,
        target=plan.target,
        dialect=plan.dialect,
        kernel=str(fault.file),
        status="failed",
        detail=str(fault),
        latency=Latency(),
    )


def in_order(cases: BenchmarkCases, results: Sequence[TaskResult]) -> list[TaskResult]:
    """Return the results in the order of the cases, faults first."""
    order = {s.case_name: n for n, s in enumerate(cases.ready)}
    return sorted(results, key=lambda r: order.get(r.case, -1))
