"""Findings as diagnostics: those of the text, of the last profile, and what only a history of results can tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import get_args

from accelopt_lsp.features.wording import change, duration_interval, speedup
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_profiling.measurement import Finding, Severity

#: Findings about the problem and the packages a run needs: editing the kernel does not change them.
LASTING = frozenset(
    {
        "no-problem",
        "inferred-problem",
        "inferred-size",
        "problem-missing",
        "problem-invalid",
        "missing-package",
        "host-unreachable",
    }
)

#: At most so many diagnostics for one file, the gravest; the rest are counted in a last one.
MOST = 100
_GRAVEST_FIRST = get_args(Severity)


def findings(state: Document) -> list[Finding]:
    """Return what to say about a file now, by line. What belongs to older text says so and is only a hint."""
    current = [*state.findings, *(_old(state.run_findings) if state.old else state.run_findings)]
    for kernel in state.kernels:
        if kernel.shown is not None:
            current += _old(kernel.shown.findings) if kernel.old else kernel.shown.findings
        current += _from_history(kernel)
    unique = list(_once(map(_of_surroundings, current)))
    gravest = sorted(unique, key=lambda f: _GRAVEST_FIRST.index(f.severity))[:MOST]
    listed = sorted(gravest, key=lambda f: f.line)
    if rest := len(unique) - len(listed):
        message = f"{rest} more findings are not shown."
        listed.append(Finding("more-findings", listed[-1].line, "information", message))
    return listed


def _from_history(kernel: KernelState) -> Iterator[Finding]:
    line = kernel.kernel.line
    if kernel.shown is not None and kernel.before is not None and not kernel.old:
        changed = change(kernel.before, kernel.shown)
        if changed and changed.direction == "slower":
            now, then = duration_interval(kernel.shown.latency), duration_interval(kernel.before.latency)
            message = f"{kernel.kernel.name} is {changed}: {now}, before {then}."
            yield Finding("regression", line, "warning", message)
    if kernel.offers:
        best = kernel.offers[0]
        message = f"A checked faster version of {kernel.kernel.name} is known, {speedup(best.speedup)}: {best.summary}"
        yield Finding("faster-known", line, "hint", message)


def _old(run_findings: Iterable[Finding]) -> list[Finding]:
    """Return what a run found out about older text; what it could not run without is as true as before."""
    return [
        f if f.code in LASTING else replace(f, severity="hint", message=f"Before this edit: {f.message}")
        for f in run_findings
    ]


def _of_surroundings(finding: Finding) -> Finding:
    """Return a missing package as what it is: nothing wrong with the text."""
    return replace(finding, severity="information") if finding.code == "missing-package" else finding


def _once(items: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the same thing on the same line once; a missing problem or package once per file."""
    keys: set[tuple[str, int, str]] = set()
    for finding in items:
        once_per_file = finding.code in ("no-problem", "missing-package")
        key = (finding.code, 0, "") if once_per_file else (finding.code, finding.line, finding.message)
        if key not in keys:
            keys.add(key)
            yield finding
