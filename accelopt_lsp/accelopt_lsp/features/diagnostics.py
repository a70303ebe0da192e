"""Findings as diagnostics: those of the text, of the last profile, and what only a history of results can tell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import get_args

from accelopt_lsp.features.wording import change, duration_interval, latency_change, speedup
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_profiling.measurement import Finding, Latency, Severity

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

#: At most so many diagnostics for one kernel, and for what is in no kernel: the gravest, and one that names the rest.
MOST_OF_KERNEL, MOST = 3, 100
_GRAVEST_FIRST = get_args(Severity)
#: What differs between findings of one cause, besides names of kernels: numbers, with their units.
_NUMBERS = re.compile(r"\d[\d.,]*( ?([kMGT]i?B|B|%|us|ms|s)\b)?")
_WORD = re.compile(r"\w+")
#: So many further lines are named in a message.
_LINES = 6


@dataclass(frozen=True)
class Diagnostic:
    """A finding, and the other places of the same cause: their 1-based lines, each with a few words."""

    finding: Finding
    places: tuple[tuple[int, str], ...] = ()

    @property
    def message(self) -> str:
        """What is said, with the lines of the other places."""
        lines = sorted({line for line, _ in self.places})
        if not lines or self.finding.code == "more-findings":
            return self.finding.message
        named = ", ".join(map(str, lines[:_LINES]))
        more = f" and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
        return f"{self.finding.message} Also on line{'' if len(lines) == 1 else 's'} {named}{more}."


def diagnostics(
    state: Document, ignored: Collection[str] = (), all_findings: bool = True
) -> list[Diagnostic]:
    """Return what to say about a file now, by line: one diagnostic for each cause, at most three for a kernel.

    ``ignored`` are the codes that the settings silence, as comments of the text do. What belongs to older text says so
    and is only a hint. What a history of results tells is not counted. Without ``all_findings`` only what makes a run
    impossible is said.
    """
    run_findings = [_of_surroundings(finding) for finding in state.run_findings]
    current = [*state.findings, *(_old(run_findings) if state.old else run_findings)]
    history: list[Finding] = []
    for kernel in state.kernels:
        if kernel.shown is not None:
            current += _old(kernel.shown.findings) if kernel.old else kernel.shown.findings
        history += _from_history(kernel)
    if not all_findings:
        current = [f for f in current if f.severity == "error" or f.code in LASTING]
        history = []
    causes = _by_cause(state, _once(state.ignored.rest(current, ignored)))
    kernels: dict[str, list[Diagnostic]] = {}
    for cause in causes:
        at = state.kernel_at(cause.finding.line)
        kernels.setdefault("" if at is None else at.kernel.name, []).append(cause)
    shown = [r for name, of in kernels.items() for r in _gravest(of, MOST_OF_KERNEL if name else MOST)]
    shown += [Diagnostic(f) for f in state.ignored.rest(history, ignored)]
    return sorted(shown, key=lambda cause: cause.finding.line)


def _by_cause(state: Document, findings: Iterable[Finding]) -> list[Diagnostic]:
    """Return one diagnostic for all that say the same in one file, numbers and names of kernels apart: variants of a
    kernel share their causes. An error stands at each kernel that has it."""
    names = {word for k in state.kernels for word in _words(k.kernel.name)}
    causes: dict[tuple[str, str, tuple[str, ...]], list[Finding]] = {}
    for finding in findings:
        at = state.kernel_at(finding.line) if finding.severity == "error" else None
        words = tuple(word for word in _words(finding.message) if word not in names)
        causes.setdefault((at.kernel.name if at else "", finding.code, words), []).append(finding)
    result = []
    for cause in causes.values():
        first, *others = sorted(cause, key=lambda f: (_GRAVEST_FIRST.index(f.severity), f.line))
        result.append(Diagnostic(first, tuple((f.line, _place(state, f)) for f in others)))
    return result


def _words(text: str) -> list[str]:
    return _WORD.findall(_NUMBERS.sub("", text))


def _place(state: Document, finding: Finding) -> str:
    """Return where a finding is whose words stand at another place: a hover of VS Code has a line for each."""
    at = state.kernel_at(finding.line)
    return f"in {at.kernel.name}" if at is not None else finding.message


def _gravest(causes: list[Diagnostic], most: int) -> list[Diagnostic]:
    """Return the gravest ``most``, the last of them naming the rest where there are more."""
    ranked = sorted(causes, key=lambda r: (_GRAVEST_FIRST.index(r.finding.severity), r.finding.line))
    if len(ranked) <= most:
        return ranked
    shown, rest = ranked[: most - 1], ranked[most - 1 :]
    codes = ", ".join(dict.fromkeys(r.finding.code for r in rest))
    message = f"{len(rest)} more findings: {codes}. `accelopt profile FILE` prints all."
    places = tuple((r.finding.line, r.message) for r in rest[:MOST])
    first = min(r.finding.line for r in rest)
    return [*shown, Diagnostic(Finding("more-findings", first, rest[0].finding.severity, message), places)]


def _from_history(kernel: KernelState) -> Iterator[Finding]:
    line = kernel.kernel.line
    slower = next(_slowdowns(kernel), None)
    if slower is not None and kernel.shown is not None:
        changed, then = slower
        now = duration_interval(kernel.shown.latency)
        message = f"{kernel.kernel.name} is {changed}: {now}, before {duration_interval(then)}."
        yield Finding("regression", line, "warning", message)
    if kernel.offers:
        best = kernel.offers[0]
        message = f"A checked faster version of {kernel.kernel.name} is known, {speedup(best.speedup)}: {best.summary}"
        yield Finding("faster-known", line, "hint", message)


def _slowdowns(kernel: KernelState) -> Iterator[tuple[str, Latency]]:
    """Yield what the kernel is slower than, in words with its time: the last save, the version that was accepted."""
    shown, accepted = kernel.shown, kernel.accepted
    if shown is None or kernel.old:
        return
    if kernel.before is not None:
        changed = change(kernel.before, shown)
        if changed is not None and changed.direction == "slower":
            yield str(changed), kernel.before.latency
    if accepted is not None and (accepted.target, accepted.case) == (shown.target, shown.case or None):
        changed = latency_change(accepted.fast, shown.latency, shown.target)
        if changed is not None and changed.direction == "slower":
            yield changed.than("the version that you accepted"), accepted.fast


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
