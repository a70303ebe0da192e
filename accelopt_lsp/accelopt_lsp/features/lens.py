"""Code lenses above a kernel: what it costs, what can be done about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from accelopt_lsp.features.wording import (
    change,
    headline,
    profiled_at,
    speedup,
    syntax_fault,
    version_name,
)
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_profiling.measurement import Dialect, KernelMeasurement
from accelopt_profiling.quantity import Known


@dataclass(frozen=True)
class Lens:
    """A title on a 1-based line, and the command that choosing it runs: its name after ``accelopt.server.``."""

    line: int
    title: str
    command: str
    argument: Mapping[str, object]


def lenses(state: Document, jobs: Iterable[BackgroundJob], targets: Mapping[Dialect, str]) -> list[Lens]:
    """Return the lenses of a file, top to bottom: one with the result per kernel, one to optimize it or to
    stop doing so, and per kernel with suggestions one that shows the best and, of several, one that lists
    them all."""
    running = list(jobs)
    result: list[Lens] = []
    for kernel in state.kernels:
        if kernel.kernel.device_function and kernel.shown is None:
            continue
        line, name = kernel.kernel.first_line, kernel.kernel.name
        where = {"uri": state.uri, "kernel": name}
        profiling = next((j for j in running if j.kind == "profile"), None)
        target = targets.get(kernel.kernel.dialect, "")
        title = result_title(state, kernel, target, profiling is not None)
        result.append(Lens(line, title, "profile", where))
        if state.untrusted is not None:
            continue
        search = next((j for j in running if j.kind == "optimize" and j.kernel in (None, name)), None)
        result += _of_search(line, kernel, search, where)
        if kernel.offers:
            best = kernel.offers[0]
            count = len(kernel.offers)
            versions = "1 checked faster version" if count == 1 else f"{count} checked faster versions"
            title = f"{versions}: {speedup(best.speedup)}"
            argument = {**where, "id": best.id, "title": version_name(best)}
            result.append(Lens(line, title, "suggestions", argument))
            if count > 1:
                result.append(Lens(line, "all versions", "choose", where))
    return result


def _of_search(
    line: int, kernel: KernelState, search: BackgroundJob | None, where: Mapping[str, object]
) -> Iterator[Lens]:
    """Yield what can be done about a search: pause, resume or cancel the one that runs; resume an interrupted
    one, or begin one."""
    if search is None:
        if (run := kernel.resumable) is not None:
            yield Lens(line, f"resume the search ({run.tried} tried)", "resume", where)
        yield Lens(line, "optimize", "optimize", where)
        return
    job = {"job": search.id}
    if search.paused:
        yield Lens(line, "paused (resume)", "resume", job)
        yield Lens(line, "cancel", "cancel", job)
    else:
        yield Lens(line, "optimizing... (cancel)", "cancel", job)
        yield Lens(line, "pause", "pause", job)


def result_title(state: Document, kernel: KernelState, target: str, profiling: bool) -> str:
    """Return ``est. 911 us on trn1 · 41 % of peak · VectorE bound · 1.22x faster than last save``."""
    result, fault = kernel.shown, syntax_fault(state)
    if fault:
        return fault if result is None else f"{fault} · before this edit: {headline(result)}"
    if result is None:
        if profiling:
            return f"profiling for {target}..." if target else "profiling..."
        if state.untrusted is not None:
            return f"not profiled: {state.untrusted} is not trusted"
        return "not profiled yet"
    if kernel.old:
        doing = "profiling..." if profiling else "save to profile again"
        return f"before this edit: {headline(result)} · {doing}"
    parts = [headline(result, (*state.run_findings, *state.findings))]
    if result.latency.known is not Known.NOT_MEASURED and (changed := change(kernel.before, result)):
        parts.append(str(changed))
    if result.case:
        tuned = "autotune_configurations" in result.quantities
        parts.append(profiled_at(result) if tuned else result.case)
    if profiling:
        parts.append("checking the result..." if _awaits_check(result) else "profiling...")
    elif result.latency.us is not None and result.correctness.status == "not checked":
        inferred = any(f.code == "inferred-problem" for f in (*state.findings, *state.run_findings))
        parts.append("inferred arguments, result not checked" if inferred else "result not checked")
    elif result.latency.us is not None and result.correctness.compared < result.correctness.of:
        parts.append(f"{result.correctness.extent} compared")
    return " · ".join(parts)


def _awaits_check(result: KernelMeasurement) -> bool:
    """Return whether the time is known and the run that compares the result has not ended."""
    return result.latency.us is not None and result.stage in ("executed", "compiled")
