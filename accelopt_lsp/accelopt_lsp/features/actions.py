"""Code actions: everything a lens or a button can do, so that editors without lenses and buttons lose nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.features.wording import change, origin, speedup, version_name
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_lsp.state.state_store import FileState, KernelState
from accelopt_profiling.measurement import LIMITS, Finding

REWRITE = "refactor.rewrite.accelopt"
SUGGESTION = f"{REWRITE}.suggestion"
OPTIMIZE = f"{REWRITE}.optimize"
PROFILE = f"{REWRITE}.profile"
REJECT = f"{REWRITE}.reject"
REMEMBER = f"{REWRITE}.remember"
PAUSE = f"{REWRITE}.pause"
CANCEL = f"{REWRITE}.cancel"
RUNS = f"{REWRITE}.runs"
MEMORY = f"{REWRITE}.memory"
RECORD = f"{REWRITE}.record"
MIGRATE = f"{REWRITE}.migrate"
EXPLAIN = f"{REWRITE}.explain"
QUICKFIX = "quickfix.accelopt"


@dataclass(frozen=True)
class Action:
    """Something to choose. ``command`` is its name after ``accelopt.server.``; a suggestion also has ``resolve``,
    what is needed to compute its edit later, and a ``name`` for a view of it. ``fixes`` are codes of findings that it
    removes."""

    title: str
    kind: str
    command: str
    argument: Mapping[str, object]
    resolve: dict[str, str] | None = None
    name: str = ""
    by_model: bool = False
    preferred: bool = False
    disabled: str | None = None
    fixes: tuple[str, ...] = field(default=())


def actions(
    state: FileState, first: int, last: int, jobs: Iterable[BackgroundJob], only: Sequence[str] | None = None
) -> list[Action]:
    """Return the actions for the 1-based lines ``first``..``last``, best suggestions first; ``only`` are the
    kinds asked for, each standing for the kinds below it too."""
    found = [a for a in _all(state, first, last, list(jobs)) if _wanted(a.kind, only)]
    return sorted(found, key=lambda a: _ORDER.index(a.kind))


_ORDER = [
    SUGGESTION,
    QUICKFIX,
    OPTIMIZE,
    PAUSE,
    CANCEL,
    PROFILE,
    RECORD,
    MIGRATE,
    REMEMBER,
    EXPLAIN,
    REJECT,
    RUNS,
    MEMORY,
]


def _all(state: FileState, first: int, last: int, jobs: list[BackgroundJob]) -> Iterator[Action]:
    inside = [k for k in state.kernels if k.kernel.first_line <= last and first <= k.kernel.end_line]
    for kernel in inside:
        yield from _of_kernel(state, kernel, jobs)
        where = {"uri": state.uri, "kernel": kernel.kernel.name}
        yield Action("Show remembered changes of kernels like this one", MEMORY, "showMemory", where)
    if state.untrusted is None and (inside or state.kernels):
        yield Action("Profile this file now", PROFILE, "profile", {"uri": state.uri})
        if any(k.kernel.dialect == "triton" for k in state.kernels):
            where = {"uri": state.uri}
            yield Action("Record from a test...", RECORD, "record", where, fixes=("no-problem",))
        if any(k.kernel.beta1 for k in state.kernels):
            where = {"uri": state.uri}
            yield Action("Move this kernel to today's NKI", MIGRATE, "migrate", where, fixes=("deprecated",))
        yield Action("Show the searches in this file", RUNS, "showRuns", {"uri": state.uri})
    for job in jobs:
        if job.kind == "optimize":
            verb = "resume" if job.paused else "pause"
            yield Action(f"{verb.capitalize()}: {job.title}", PAUSE, verb, {"job": job.id, "uri": state.uri})
        yield Action(f"Cancel: {job.title}", CANCEL, "cancel", {"job": job.id, "uri": state.uri})
    if state.untrusted is None:
        yield from _raised_limits(state)
    if not state.kernels:
        return
    where = {"uri": state.uri, "kernel": (inside or state.kernels)[0].kernel.name}
    if any(f.code == "no-problem" for f in _findings(state)):
        yield Action(
            "Create a problem file for this kernel", QUICKFIX, "createProblem", where, fixes=("no-problem",)
        )
    elif any(f.code == "inferred-problem" for f in _findings(state)):
        yield Action(
            "Write the problem file (to keep and edit the inferred arguments)", QUICKFIX, "createProblem", where,
            fixes=("inferred-problem", "inferred-size"),
        )  # fmt: skip


def _raised_limits(state: FileState) -> Iterator[Action]:
    """Yield one action for each limit that ended the last run."""
    codes = dict.fromkeys(f.code for f in _findings(state) if f.quickfix == "raiseLimit")
    for code in codes:
        setting = LIMITS[code]
        where = {"uri": state.uri, "id": setting}
        yield Action(f"Raise the limit {setting}", QUICKFIX, "raiseLimit", where, fixes=(code,))


def _of_kernel(state: FileState, kernel: KernelState, jobs: list[BackgroundJob]) -> Iterator[Action]:
    name = kernel.kernel.name
    where = {"uri": state.uri, "kernel": name}
    for index, suggestion in enumerate(kernel.offers):
        yield _suggestion(state, suggestion, best=index == 0)
        yield Action(
            f"Explain: {suggestion.summary}", EXPLAIN, "explain", {"id": suggestion.id, "uri": state.uri}
        )
        title = f"Reject: {suggestion.summary}"
        yield Action(title, REJECT, "reject", {"id": suggestion.id, "uri": state.uri})
    if not kernel.offers:
        for suggestion in kernel.suggestions[:1]:
            reason = f"{name} has changed since this was found; save it and optimize again."
            yield _suggestion(state, suggestion, best=False, disabled=reason)
    faster = change(kernel.before, kernel.shown) if kernel.shown is not None and not kernel.old else None
    if state.untrusted is None and faster is not None and faster.direction == "faster":
        yield Action(f"Remember this change to {name} ({faster})", REMEMBER, "remember", where)
    searching = any(j.kind == "optimize" and j.kernel in (None, name) for j in jobs)
    if state.untrusted is None and not searching and (run := kernel.resumable) is not None:
        yield Action(f"Resume the search for {name} ({run.tried} tried)", OPTIMIZE, "resume", where)
    if state.untrusted is None and not searching:
        yield Action(f"Optimize {name}", OPTIMIZE, "optimize", where)


def _suggestion(
    state: FileState, suggestion: Suggestion, *, best: bool, disabled: str | None = None
) -> Action:
    title = f"{speedup(suggestion.speedup)} · {suggestion.summary.rstrip('.')} · {origin(suggestion)}"
    return Action(
        title=title,
        kind=SUGGESTION,
        command="accept",
        argument={"id": suggestion.id, "uri": state.uri},
        resolve={
            "id": suggestion.id,
            "uri": state.uri,
            "kernel": suggestion.kernel,
            "hash": suggestion.base_hash,
        },
        name=version_name(suggestion),
        by_model=suggestion.origin.startswith("model:")
        or any(s.startswith("model:") for s in suggestion.steps),
        preferred=best,
        disabled=disabled,
        fixes=("faster-known",),
    )


def _findings(state: FileState) -> Iterator[Finding]:
    yield from state.findings
    yield from state.run_findings
    for kernel in state.kernels:
        if kernel.shown is not None:
            yield from kernel.shown.findings


def _wanted(kind: str, only: Sequence[str] | None) -> bool:
    return not only or any(kind == o or kind.startswith(f"{o}.") for o in only)
