"""Code actions: everything a lens or a button can do, so that editors without lenses and buttons lose nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.actions import ACTIONS, KINDS
from accelopt_lsp.features.wording import change, origin, speedup, version_name
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_profiling.ignored import can_be_ignored
from accelopt_profiling.measurement import LIMITS, Finding


@dataclass(frozen=True)
class CodeAction:
    """Something to choose. ``command`` is the action's name, ``fixes`` are codes of findings that it mends.

    A suggestion also has ``resolve``, what is needed to compute its edit later, and a ``name`` for a view of it.
    """

    title: str
    kind: str
    command: str
    argument: Mapping[str, object]
    fixes: tuple[str, ...]
    resolve: dict[str, str] | None = None
    name: str = ""
    by_model: bool = False
    preferred: bool = False
    disabled: str | None = None


def offer(action: str, argument: Mapping[str, object], which: str = "", **words: object) -> CodeAction:
    """Return a code action of ``actions.json``; ``words`` fill its title."""
    row = ACTIONS[action].offers[which]
    return CodeAction(row.title.format(**words), row.kind, command=action, argument=argument, fixes=row.fixes)


def code_actions(
    state: Document, first: int, last: int, jobs: Iterable[BackgroundJob], only: Sequence[str] | None = None
) -> list[CodeAction]:
    """Return the actions for the 1-based lines ``first``..``last``, best suggestions first; ``only`` are the
    kinds asked for, each standing for the kinds below it too."""
    chosen = [a for a in _all(state, first, last, list(jobs)) if _asked_for(a.kind, only)]
    return sorted(chosen, key=lambda a: KINDS.index(a.kind))


def _all(state: Document, first: int, last: int, jobs: list[BackgroundJob]) -> Iterator[CodeAction]:
    where = {"uri": state.uri}
    inside = [k for k in state.kernels if k.kernel.first_line <= last and first <= k.kernel.end_line]
    for kernel in inside:
        yield from _of_kernel(state, kernel, jobs)
        yield offer("showMemory", {**where, "kernel": kernel.kernel.name})
        if state.untrusted is None and kernel.shown is not None:
            for action in ("compare", "compareTargets"):
                yield offer(action, {**where, "kernel": kernel.kernel.name}, kernel=kernel.kernel.name)
    if state.untrusted is None and state.kernels:
        yield offer("profile", where)
        if any(k.kernel.dialect == "triton" for k in state.kernels):
            yield offer("record", where)
        if any(k.kernel.beta1 for k in state.kernels):
            yield offer("migrate", where)
        yield offer("showRuns", where)
    if state.untrusted is not None:
        yield offer("trust", where)
    for job in jobs:
        at = {"job": job.id, "uri": state.uri}
        if job.kind == "optimize":
            yield (
                offer("resume", at, "paused", job=job.title)
                if job.paused
                else offer("pause", at, job=job.title)
            )
        yield offer("cancel", at, job=job.title)
    codes = dict.fromkeys(f.code for f in _findings(state))
    if state.untrusted is None:
        for setting in (LIMITS[code] for code in codes if code in LIMITS):
            yield offer("raiseLimit", {**where, "id": setting}, setting=setting)
        yield from _silences(state, first, last)
    if "deprecated" in codes and any(k.kernel.dialect == "nki" and not k.kernel.beta1 for k in state.kernels):
        yield offer("writeNewerNames", where)
    if state.kernels:
        of_kernel = {**where, "kernel": (inside or state.kernels)[0].kernel.name}
        if "no-problem" in codes:
            yield offer("createProblem", of_kernel, "missing")
        elif "inferred-problem" in codes or "inferred-size" in codes:
            yield offer("createProblem", of_kernel, "inferred")


def _silences(state: Document, first: int, last: int) -> Iterator[CodeAction]:
    """Yield what silences each finding of the lines, nearest first."""
    at = {f.code: f.line for f in _findings(state) if first <= f.line <= last and can_be_ignored(f)}
    for code, line in at.items():
        for scope in ("line", "file", "project"):
            argument = {"uri": state.uri, "id": code, "line": line, "scope": scope}
            yield replace(offer("ignore", argument, scope, code=code), fixes=(code,))


def _of_kernel(state: Document, kernel: KernelState, jobs: list[BackgroundJob]) -> Iterator[CodeAction]:
    name = kernel.kernel.name
    where = {"uri": state.uri, "kernel": name}
    for index, suggestion in enumerate(kernel.offers):
        at = {"id": suggestion.id, "uri": state.uri}
        yield replace(_suggestion(state, suggestion), preferred=index == 0)
        yield offer("explain", at, summary=suggestion.summary)
        yield offer("reject", at, summary=suggestion.summary)
        if len(suggestion.way) > 1 and state.untrusted is None:
            words = {"count": len(suggestion.way), "speedup": speedup(suggestion.speedup)}
            yield offer("check", {**at, "ask": True}, "without", **words)
    if not kernel.offers:
        for suggestion in kernel.suggestions[:1]:
            reason = f"{name}, or a line that it is launched with, has changed; check this version again."
            yield replace(_suggestion(state, suggestion), disabled=reason)
            if state.untrusted is None:
                at = {"id": suggestion.id, "uri": state.uri}
                yield offer("check", at, "again", summary=suggestion.summary.rstrip("."))
    if state.untrusted is not None:
        return
    faster = change(kernel.before, kernel.shown) if kernel.shown is not None and not kernel.old else None
    if faster is not None and faster.direction == "faster" and not kernel.is_accepted:
        yield offer("remember", where, kernel=name, faster=faster)
    if any(j.kind == "optimize" and j.kernel in (None, name) for j in jobs):
        return
    if (run := kernel.resumable) is not None:
        yield offer("resume", where, "interrupted", kernel=name, tried=run.tried)
    yield offer("optimize", where, kernel=name)


def _suggestion(state: Document, suggestion: Suggestion) -> CodeAction:
    words = {
        "speedup": speedup(suggestion.speedup),
        "summary": suggestion.summary.rstrip("."),
        "origin": origin(suggestion),
    }
    at = {"id": suggestion.id, "uri": state.uri}
    return replace(
        offer("accept", at, **words),
        resolve={**at, "kernel": suggestion.kernel, "hash": suggestion.base_hash},
        name=version_name(suggestion),
        by_model=any(s.startswith("model:") for s in (suggestion.origin, *suggestion.steps)),
    )


def _findings(state: Document) -> Iterator[Finding]:
    yield from state.ignored.rest(state.findings)
    yield from state.ignored.rest(state.run_findings)
    for kernel in state.kernels:
        if kernel.shown is not None:
            yield from state.ignored.rest(kernel.shown.findings)


def _asked_for(kind: str, only: Sequence[str] | None) -> bool:
    return not only or any(kind == o or kind.startswith(f"{o}.") for o in only)
