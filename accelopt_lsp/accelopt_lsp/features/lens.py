"""Code lenses above a kernel: what can be done about it, then what it costs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from accelopt_lsp.features.wording import (
    Detail,
    change,
    headline,
    profiled_at,
    short_speedup,
    syntax_fault,
    version_name,
)
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_lsp.state.version import Version, alike
from accelopt_profiling.measurement import Dialect, KernelMeasurement
from accelopt_profiling.quantity import Known

#: So many saves are in a sparkline.
SAVES = 8

_BLOCKS = "▁▂▃▄▅▆▇█"

#: The first shape that a case names: ``128x512`` of "q 128x512 float32, k 128x512 float32".
_SHAPE = re.compile(r"\b\d+(x\d+)*\b")


@dataclass(frozen=True)
class Lens:
    """A title on a 1-based line, and the command that choosing it runs: its name after ``accelopt.server.``.

    ``icon`` is a name of VS Code's codicons, for editors that draw them.
    """

    line: int
    title: str
    command: str
    argument: Mapping[str, object]
    icon: str = ""


def lenses(
    state: Document, jobs: Iterable[BackgroundJob], targets: Mapping[Dialect, str], detail: Detail = "normal"
) -> list[Lens]:
    """Return the lenses of a file, top to bottom; per kernel what can be done first, since an editor cuts the line.

    A search that runs, or that can begin; then the checked versions; then the result, the longest, at the end.
    """
    running = list(jobs)
    result: list[Lens] = []
    for kernel in state.kernels:
        if kernel.kernel.device_function and kernel.shown is None:
            continue
        line, name = kernel.kernel.first_line, kernel.kernel.name
        where = {"uri": state.uri, "kernel": name}
        if state.untrusted is None:
            search = next((j for j in running if j.kind == "optimize" and j.kernel in (None, name)), None)
            result += _of_search(line, kernel, search, where)
            result += _of_versions(line, kernel, where) or _of_sizes(state, line, kernel, where)
        profiling = any(j.kind == "profile" for j in running)
        title = result_title(state, kernel, targets.get(kernel.kernel.dialect, ""), profiling, detail)
        known = kernel.shown is not None and kernel.shown.latency.us is not None and state.untrusted is None
        result.append(Lens(line, title, "targetCosts" if known else "profile", where))
    return result


def _of_search(
    line: int, kernel: KernelState, search: BackgroundJob | None, where: Mapping[str, object]
) -> Iterator[Lens]:
    """Yield what can be done about a search: cancel, pause or resume the one that runs; begin one, or resume an
    interrupted one."""
    if search is None:
        yield Lens(line, "Optimize", "optimize", where, "zap")
        if (run := kernel.resumable) is not None:
            yield Lens(line, f"Resume ({run.tried} tried)", "resume", where, "debug-continue")
        return
    job = {"job": search.id}
    if search.paused:
        yield Lens(line, "Resume the search", "resume", job, "debug-continue")
    else:
        yield Lens(line, "Pause the search", "pause", job, "debug-pause")
    yield Lens(line, "Cancel", "cancel", job, "debug-stop")


def _of_versions(line: int, kernel: KernelState, where: Mapping[str, object]) -> list[Lens]:
    """Return the lens of the checked versions: one is shown, of several a list."""
    if not kernel.offers:
        return []
    best, count = kernel.offers[0], len(kernel.offers)
    title = f"{count} checked: {short_speedup(best.speedup)}"
    if count > 1:
        return [Lens(line, title, "choose", where)]
    return [Lens(line, title, "suggestions", {**where, "id": best.id, "title": version_name(best)})]


def _of_sizes(state: Document, line: int, kernel: KernelState, where: Mapping[str, object]) -> list[Lens]:
    """Return the lens that leads to what a kernel was run with where that was inferred."""
    result = kernel.shown
    if result is None or result.fault is not None or not _is_inferred(state, kernel):
        return []
    shape = _SHAPE.search(result.case)
    return [Lens(line, f"Change {shape[0] if shape else 'arguments'} (inferred)", "createProblem", where)]


def _is_inferred(state: Document, kernel: KernelState) -> bool:
    own = () if kernel.shown is None else kernel.shown.findings
    return any(f.code == "inferred-problem" for f in (*state.findings, *state.run_findings, *own))


def result_title(
    state: Document, kernel: KernelState, target: str, profiling: bool, detail: Detail = "normal"
) -> str:
    """Return ``est. 820-1,000 us on trn1 · VectorE bound · 41 % · 1.22x faster than last save · ▇▅▂``."""
    result, fault = kernel.shown, syntax_fault(state)
    if fault:
        return fault if result is None else f"{fault} · before this edit: {headline(result, detail=detail)}"
    if result is None:
        if profiling:
            return f"profiling for {target}..." if target else "profiling..."
        if state.untrusted is not None:
            return f"not profiled: {state.untrusted} is not trusted"
        return "not profiled yet"
    if kernel.old:
        doing = " · profiling..." if profiling else " · save to profile again" if detail == "full" else ""
        return f"before this edit: {headline(result, detail=detail)}{doing}"
    parts = [headline(result, (*state.run_findings, *state.findings), detail)]
    if result.latency.known is not Known.NOT_MEASURED and (changed := change(kernel.before, result)):
        parts.append(str(changed))
    if detail == "full" and result.case:
        tuned = "autotune_configurations" in result.quantities
        parts.append(profiled_at(result) if tuned else result.case)
    if profiling:
        parts.append("checking the result..." if _awaits_check(result) else "profiling...")
    elif result.latency.us is not None and result.correctness.status == "not checked":
        inferred = _is_inferred(state, kernel)
        parts.append("inferred, not checked" if inferred else "result not checked")
    elif result.latency.us is not None and result.correctness.compared < result.correctness.of:
        full = f"{result.correctness.extent} compared"
        parts.append(full if detail == "full" else "compared in part")
    if detail != "short" and (line := sparkline(kernel.versions, result)):
        parts.append(line)  # the last, as an editor cuts the end
    return " · ".join(parts)


def sparkline(versions: Sequence[Version], result: KernelMeasurement) -> str:
    """Return the times of the last saves as blocks, the last one that of ``result``; "" where fewer than three differ.

    The height is the time, from zero. Times that are known in another way are left out.
    """
    same = [v for v in alike(versions, result) if v.latency.known is result.latency.known][-SAVES:]
    times = [v.latency.us for v in same if v.latency.us]
    if len({(v.content_hash, v.rest_hash) for v in same}) < 3 or not times:
        return ""
    return "".join(_BLOCKS[max(0, math.ceil(us / max(times) * len(_BLOCKS)) - 1)] for us in times)


def _awaits_check(result: KernelMeasurement) -> bool:
    """Return whether the time is known and the run that compares the result has not ended."""
    return result.latency.us is not None and result.stage in ("executed", "compiled")
