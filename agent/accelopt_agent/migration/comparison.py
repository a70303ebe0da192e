"""Moves a file on a host: both versions are run and compared, and the new one is profiled."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelopt_agent.migration.file_migration import UnmovedLine, migrate_text
from accelopt_profiling.hosts.host import Host, JobFailedError
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import Job, Limits, MeasureOptions, Step
from accelopt_profiling.kernels import KernelSource, find_kernels
from accelopt_profiling.measurement import Finding
from accelopt_profiling.nki.equivalence import CaseComparison, CompareParams, DialectComparison
from accelopt_profiling.nki.tile_facts import FactsParams, TileFacts
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.profiler import ProfileRequest, profile

#: Errors of what a kernel computes, which the comparison judges.
_OF_VALUES = ("wrong-result", "uninitialised-read")
#: The core that both are emulated on: today's NKI has no first generation.
TARGET = "trn2"


@dataclass(frozen=True)
class ComparedMigration:
    """The text in today's NKI. ``cases`` compare it with the original, none where nothing could be compared;
    ``stopped`` is the error that the profile of the new text ends in, "" for none. ``not_compared`` names what no case
    reached and why the comparison ended early, ``loops`` how often each loop ran, in sentences."""

    text: str
    unmoved: list[UnmovedLine] = field(default_factory=list)
    cases: list[CaseComparison] = field(default_factory=list)
    stopped: str = ""
    not_compared: list[str] = field(default_factory=list)
    loops: str = ""

    def written_as(self, path: Path) -> Path:
        """Return where the text goes that was to be ``path``: a text that does not run is a draft."""
        return path.with_name(f"{path.name}.draft") if self.stopped else path

    @property
    def outcome(self) -> str:
        """What became of it, in a sentence."""
        if self.equal:
            return f"It computes the same in {len(self.cases)} case{'s' if len(self.cases) > 1 else ''}."
        count = len(self.unmoved)
        unmoved = (
            f"{count} statement{' is' if count == 1 else 's are'} marked as not moved. " if count else ""
        )
        different = next((c for c in self.cases if not c.equal), None)
        why = self.stopped or (
            "" if different is None else f"Not equal in {different.case}: {different.detail}."
        )
        return " ".join(
            [f"{unmoved}{why}".strip(), *(f"Not compared: {n}." for n in self.not_compared)]
        ).strip()

    @property
    def equal(self) -> bool:
        """True if all is moved and profiled, every statement ran, and every case is equal."""
        lacks = self.unmoved or self.stopped or self.not_compared
        return bool(self.cases) and not lacks and all(c.equal for c in self.cases)


async def migrate(host: Host, file: KernelSource, target: str, limits: Limits) -> ComparedMigration:
    """Move ``file``, of which the problem says what to run, and compare both on the problem's cases.

    Raises:
        JobFailedError: the original cannot be run.
        HostUnreachableError: the host cannot be reached or was lost.
    """
    assert file.problem.ref is not None
    message = await _last(
        host, file, step="nki.facts", params=FactsParams(file.problem.ref, target), limits=limits
    )
    facts = from_plain(TileFacts, message)
    migration = migrate_text(file.text, facts.facts)
    comparison, early = DialectComparison(), ""
    try:
        params = CompareParams(file.problem.ref, migration.text, target)
        comparison = from_plain(
            DialectComparison, await _last(host, file, step="nki.compare", params=params, limits=limits)
        )
    except JobFailedError as failed:
        early = failed.error.message.rstrip(".")
    stopped = await _profile_error(host, file, text=migration.text, target=target, limits=limits)
    lines = ", ".join(map(str, migration.not_run))
    not_run = (
        [f"line{'s' * (len(migration.not_run) > 1)} {lines} of the original did not run"] if lines else []
    )
    trips = [f"line {t.line}: {', '.join(map(str, t.counts))}" for t in facts.trips if t.counts]
    return ComparedMigration(
        migration.text,
        migration.unmoved,
        cases=comparison.cases,
        stopped=stopped,
        not_compared=[*not_run, *comparison.not_compared, *([early] if early and not stopped else [])],
        loops=f"Loops ran so often: {'; '.join(trips)}." if trips else "",
    )


async def _profile_error(host: Host, file: KernelSource, text: str, target: str, limits: Limits) -> str:
    """Profile the new text in the place of the original. Return the error that it ends in, "" for none."""
    new_file = replace(
        find_kernels(text), path=file.path, problem=file.problem, project_root=file.project_root
    )
    request = ProfileRequest(new_file, {"nki": target}, limits=limits, options=MeasureOptions(detail=False))
    findings: list[Finding] = []
    async with contextlib.aclosing(profile(host, request)) as measurements:
        async for measurement in measurements:
            findings = [*measurement.findings, *(f for k in measurement.kernels for f in k.findings)]
    stopping = (f for f in findings if f.severity == "error" and f.code not in _OF_VALUES)
    return next((f"line {f.line}: {f.message}" for f in stopping), "")


async def _last(host: Host, file: KernelSource, step: str, params: Any, limits: Limits) -> Any:
    """Run one step and return its last message."""
    job = Job(job_files(file, ship_imports=host.remote), [Step(step, "numpy", to_plain(params), limits)])
    value: Any = None
    async with contextlib.aclosing(host.run(job)) as messages:
        async for message in messages:
            value = message.value
    return value
