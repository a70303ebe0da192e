"""Store what is known about the open files. Every answer to the editor comes from here, so every answer is immediate.

States are immutable; the store replaces them. Lines in a state are lines of the text as it is *now*: edits move them
(``line_map.py``), and what an edit has touched is marked as old until the next save.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from accelopt_agent.search.resumable_run import ResumableRun
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.state.line_map import LineMap, move_findings, move_kernel, move_measurement
from accelopt_lsp.state.signal import Signal
from accelopt_lsp.state.version import Version, with_version
from accelopt_profiling.ignored import IgnoredFindings
from accelopt_profiling.kernels import Kernel, KernelSource
from accelopt_profiling.measurement import FileMeasurement, Finding, KernelMeasurement
from accelopt_profiling.quantity import Known


@dataclass(frozen=True)
class KernelState:
    """One kernel of a file: where it is, what is known about it and for which text.

    ``shown`` is the newest measurement, ``before`` the one that it replaced, ``elsewhere`` those on other targets.
    ``unfit`` are the ids of suggestions that do not fit the text around the kernel any more; ``versions`` are its texts
    that were measured, for comparisons.
    """

    kernel: Kernel
    shown: KernelMeasurement | None = None
    before: KernelMeasurement | None = None
    suggestions: tuple[Suggestion, ...] = ()
    unfit: frozenset[str] = frozenset()
    accepted: Suggestion | None = None
    interrupted: ResumableRun | None = None
    touched: bool = False
    rest_changed: bool = False
    versions: tuple[Version, ...] = ()
    elsewhere: tuple[KernelMeasurement, ...] = ()

    @property
    def on_targets(self) -> tuple[KernelMeasurement, ...]:
        """The measurements of exactly this text for several targets, as far as somebody asked for them."""
        changed = self.touched or self.rest_changed
        return tuple(m for m in self.elsewhere if not changed and m.content_hash == self.kernel.content_hash)

    @property
    def old(self) -> bool:
        """Whether ``shown`` belongs to another text than the current one."""
        if self.shown is None:
            return False
        return self.touched or self.rest_changed or self.shown.content_hash != self.kernel.content_hash

    @property
    def offers(self) -> tuple[Suggestion, ...]:
        """The suggestions that fit the text as it is, best first."""
        if self.touched:
            return ()
        fitting = (s for s in self.suggestions if s.id not in self.unfit)
        return tuple(s for s in fitting if s.base_hash == self.kernel.content_hash)

    @property
    def is_accepted(self) -> bool:
        """Whether the text as it is was accepted from a suggestion, whose pair the memory holds."""
        return any(v.accepted and v.content_hash == self.kernel.content_hash for v in self.versions)

    @property
    def outdated(self) -> tuple[Suggestion, ...]:
        """The suggestions made for an earlier text, best first."""
        return tuple(s for s in self.suggestions if s not in self.offers)

    @property
    def resumable(self) -> ResumableRun | None:
        """The search of exactly this text that can go on."""
        run = self.interrupted
        same = run is not None and not self.touched and run.kernel_hash == self.kernel.content_hash
        return run if same else None

    def with_text_of(self, kernel: Kernel) -> KernelState:
        """Return the state with the version before as the one shown, where its text is back."""
        back = self.before is not None and self.before.content_hash == kernel.content_hash
        if self.shown is None or self.shown.content_hash == kernel.content_hash or not back:
            return self
        return replace(self, shown=self.before, before=None)

    def with_accepted(self, suggestion: Suggestion, content_hash: str) -> KernelState:
        """Return the state of the suggested text: its time, and nothing that only a profile can tell."""
        offers = tuple(s for s in self.suggestions if s.id != suggestion.id)
        if self.shown is None:
            return replace(self, suggestions=offers, accepted=suggestion)
        if self.shown.content_hash == content_hash:  # its profile was known, and came first
            versions = with_version(self.versions, self.shown, accepted=True)
            return replace(self, suggestions=offers, accepted=suggestion, versions=versions)
        shown = replace(
            self.shown,
            latency=suggestion.fast,
            bound=suggestion.fast_bound,
            content_hash=content_hash,
            receipt=suggestion.gate.receipt,
            percent_of_peak=None,
            waiting="",
            quantities={},
            lines=[],
            findings=[],
            timeline=None,
            launches=(),
        )
        versions = with_version(self.versions, shown, accepted=True)
        return replace(
            self, shown=shown, before=self.shown, suggestions=offers, accepted=suggestion, versions=versions
        )


@dataclass(frozen=True)
class Document:
    """One open file. ``findings`` are those of its text, ``run_findings`` those of its last profile.

    ``read`` tells that the kernels were looked for at least once; ``profiled_text`` is the hash of the text that the
    last profile started from, ``measured_rest`` the hash of everything in it that is no kernel. ``untrusted`` is the
    folder that has to be trusted before anything of the file is run; None where it is. ``ignored`` are the findings
    that its comments silence.
    """

    uri: str
    path: str
    kernels: tuple[KernelState, ...] = ()
    findings: tuple[Finding, ...] = ()
    run_findings: tuple[Finding, ...] = ()
    rest_hash: str = ""
    measured_rest: str | None = None
    profiled_text: str | None = None
    read: bool = False
    untrusted: Path | None = None
    ignored: IgnoredFindings = field(default_factory=IgnoredFindings)

    @property
    def old(self) -> bool:
        """Whether ``run_findings`` belong to another text than the current one."""
        rest_changed = self.measured_rest is not None and self.rest_hash != self.measured_rest
        return rest_changed or any(k.touched or k.old for k in self.kernels)

    def kernel_at(self, line: int) -> KernelState | None:
        """Return the innermost kernel whose text covers the 1-based ``line``."""
        inside = [k for k in self.kernels if k.kernel.first_line <= line <= k.kernel.end_line]
        return max(inside, key=lambda k: k.kernel.first_line, default=None)

    def kernel(self, name: str) -> KernelState | None:
        return next((k for k in self.kernels if k.kernel.name == name), None)

    def edit(self, moved: LineMap) -> Document:
        """Return the state after an edit: lines have moved and the kernels that it went through are marked."""
        return replace(
            self,
            kernels=tuple(_edit_kernel(k, moved) for k in self.kernels),
            findings=tuple(move_findings(self.findings, moved)),
            run_findings=tuple(move_findings(self.run_findings, moved)),
            ignored=self.ignored.moved(moved.line) if moved.moves_lines else self.ignored,
        )

    def with_text(self, source: KernelSource) -> Document:
        """Return the document after its text was read again.

        While it does not parse, the kernels known before stay, marked as touched.
        """
        ignored = IgnoredFindings.of(source.text)
        read = replace(self, findings=source.text_findings, ignored=ignored, read=True)
        if source.syntax_error is not None:
            return replace(read, kernels=tuple(replace(k, touched=True) for k in self.kernels))
        rest_changed = self.measured_rest is not None and source.rest_hash != self.measured_rest
        kernels = tuple(self._read_kernel(kernel, rest_changed) for kernel in source.kernels)
        return replace(read, kernels=kernels, rest_hash=source.rest_hash)

    def with_profile_started(self, text_hash: str) -> Document:
        return replace(self, profiled_text=text_hash)

    def with_results(self, results: FileMeasurement, source: KernelSource) -> Document:
        """Return the document after results for ``source`` arrived, partial or complete."""
        fresh = {m.name: m for m in results.kernels if results.complete or _says_something(m)}
        base = {k.name: k for k in source.kernels}
        kernels = []
        for state in self.kernels:
            result, at = fresh.get(state.kernel.name), base.get(state.kernel.name)
            if result is None or at is None:
                kernels.append(state)
                continue
            result = replace(result, content_hash=result.content_hash or at.content_hash)
            moved = LineMap.shift(state.kernel.line - at.line)
            shown = _show(state, move_measurement(result, moved), source.rest_hash)
            kernels.append(replace(shown, rest_changed=self.rest_hash != source.rest_hash))
        return replace(
            self,
            kernels=tuple(kernels),
            run_findings=tuple(f for f in results.findings if f not in source.text_findings),
            measured_rest=source.rest_hash,
        )

    def with_decided(self, accepted: Sequence[Suggestion]) -> Document:
        """Return the state with the last version of each kernel that was accepted, as the memory knows them now."""
        by_kernel = {suggestion.kernel: suggestion for suggestion in accepted}
        kernels = tuple(replace(k, accepted=by_kernel.get(k.kernel.name)) for k in self.kernels)
        return replace(self, kernels=kernels)

    def with_interrupted(self, runs: Sequence[ResumableRun]) -> Document:
        """Return the state with the searches that can go on, as the memory knows them now."""
        by_hash = {run.kernel_hash: run for run in runs}
        kernels = (replace(k, interrupted=by_hash.get(k.kernel.content_hash)) for k in self.kernels)
        return replace(self, kernels=tuple(kernels))

    def with_suggestions(self, kernel: str, suggestions: tuple[Suggestion, ...]) -> Document:
        kernels = (
            replace(k, suggestions=suggestions) if k.kernel.name == kernel else k for k in self.kernels
        )
        return replace(self, kernels=tuple(kernels))

    def with_target(self, kernel: str, result: KernelMeasurement) -> Document:
        """Return the state that knows the result of a kernel for one more target."""

        def known(k: KernelState) -> KernelState:
            others = tuple(m for m in k.on_targets if m.target != result.target)
            return replace(k, elsewhere=(*others, result)) if k.kernel.name == kernel else k

        return replace(self, kernels=tuple(map(known, self.kernels)))

    def with_unfit(self, ids: frozenset[str]) -> Document:
        """Return the state in which exactly these suggestions do not fit the rest of the text."""
        kernels = tuple(replace(k, unfit=ids & {s.id for s in k.suggestions}) for k in self.kernels)
        return replace(self, kernels=kernels)

    def with_accepted(self, suggestion: Suggestion, content_hash: str) -> Document:
        """Return the state in which the suggested kernel, of that hash, stands in the text: its time is known.

        The rest of a file with one kernel is what the suggestion was checked with.
        """
        kernels = tuple(
            k.with_accepted(suggestion, content_hash) if k.kernel.name == suggestion.kernel else k
            for k in self.kernels
        )
        if len(kernels) != 1:
            return replace(self, kernels=kernels)
        return replace(self, kernels=(replace(kernels[0], rest_changed=False),), measured_rest=None)

    def _read_kernel(self, kernel: Kernel, rest_changed: bool) -> KernelState:
        previous = self.kernel(kernel.name)
        if previous is None:
            return KernelState(kernel)
        previous = previous.with_text_of(kernel)
        moved = LineMap.shift(kernel.line - previous.kernel.line)
        return replace(
            previous,
            kernel=kernel,
            shown=move_measurement(previous.shown, moved) if previous.shown else None,
            touched=False,
            rest_changed=rest_changed,
        )


def _edit_kernel(state: KernelState, moved: LineMap) -> KernelState:
    touched = state.touched or moved.touches(state.kernel.first_line, state.kernel.end_line)
    if not moved.moves_lines:
        return state if touched == state.touched else replace(state, touched=touched)
    return replace(
        state,
        kernel=move_kernel(state.kernel, moved),
        shown=move_measurement(state.shown, moved) if state.shown else None,
        touched=touched,
    )


def _says_something(result: KernelMeasurement) -> bool:
    """Return whether a result that others follow is worth showing: a kernel may be launched by a later call."""
    findings = any(finding.code != "never-launched" for finding in result.findings)
    return result.latency.known is not Known.NOT_MEASURED or findings


def _show(state: KernelState, result: KernelMeasurement, rest_hash: str) -> KernelState:
    previous = state.shown
    new_version = previous is not None and (
        previous.content_hash != result.content_hash or state.rest_changed
    )
    before = previous if new_version else state.before
    versions = with_version(state.versions, result, rest_hash=rest_hash)
    elsewhere = () if new_version else state.elsewhere
    return replace(state, shown=result, before=before, versions=versions, elsewhere=elsewhere)


@dataclass
class StateStore:
    """The open documents by URI. Only the event loop writes; ``changed`` tells of every replaced one."""

    changed: Signal[[Document]] = field(default_factory=Signal)
    _files: dict[str, Document] = field(default_factory=dict)

    def get(self, uri: str) -> Document | None:
        return self._files.get(uri)

    def put(self, state: Document) -> Document:
        old, self._files[state.uri] = self._files.get(state.uri), state
        if state != old:
            self.changed(state)
        return state

    def update(self, uri: str, change: Callable[[Document], Document]) -> Document | None:
        """Replace the state of an open file by ``change(state)``; None when it is not open (any more)."""
        state = self._files.get(uri)
        return None if state is None else self.put(change(state))

    def suggest(self, uri: str, kernel: str, suggestions: tuple[Suggestion, ...]) -> None:
        """Offer exactly these suggestions, best first, for a kernel of an open file."""
        self.update(uri, lambda state: state.with_suggestions(kernel, suggestions))

    def show(self, uri: str, results: FileMeasurement, source: KernelSource) -> None:
        """``Document.with_results`` for an open file."""
        self.update(uri, lambda state: state.with_results(results, source))

    def edit(self, uri: str, moved: LineMap) -> Document | None:
        """``Document.edit`` for an open file. ``changed`` hears of it only when something became old by it: the
        editor itself moves what it shows."""
        state = self._files.get(uri)
        if state is None:
            return None
        edited = state.edit(moved)
        if [k.old for k in edited.kernels] != [k.old for k in state.kernels]:
            return self.put(edited)
        self._files[uri] = edited
        return edited

    def drop(self, uri: str) -> None:
        self._files.pop(uri, None)

    def files(self) -> Iterator[Document]:
        return iter(tuple(self._files.values()))

    def suggestion(self, suggestion_id: str) -> tuple[Document, KernelState, Suggestion] | None:
        """Return the offered or outdated suggestion of that id, with the kernel and file it is for."""
        for state in self._files.values():
            for kernel in state.kernels:
                for suggestion in kernel.suggestions:
                    if suggestion.id == suggestion_id:
                        return state, kernel, suggestion
        return None
