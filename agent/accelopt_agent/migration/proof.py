"""Moves a file on a host and proves it: a run for the facts, the translation, and both versions run and compared."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from accelopt_agent.migration.file_migration import UnmovedLine, migrate_text
from accelopt_profiling.hosts.host import Host, JobFailedError
from accelopt_profiling.jobs import Job, Limits, Step
from accelopt_profiling.kernel_file import KernelFile
from accelopt_profiling.nki.equivalence import CaseComparison, CompareParams
from accelopt_profiling.nki.tile_facts import FactsParams, TileFacts
from accelopt_profiling.plain import from_plain, to_plain

#: The core that both are emulated on: today's NKI has no first generation.
TARGET = "trn2"


@dataclass(frozen=True)
class ProvedMigration:
    """The text in today's NKI. ``cases`` compare it with the original, none where nothing could be compared;
    ``stopped`` is why the original's run or the comparison ended early, "" where they did not."""

    text: str
    unmoved: list[UnmovedLine] = field(default_factory=list)
    cases: list[CaseComparison] = field(default_factory=list)
    stopped: str = ""

    @property
    def outcome(self) -> str:
        """What became of it, in a sentence."""
        if self.proved:
            return f"It computes the same in {len(self.cases)} case{'s' if len(self.cases) > 1 else ''}."
        count = len(self.unmoved)
        left = f"{count} statement{' is' if count == 1 else 's are'} marked as not moved. " if count else ""
        different = next((c for c in self.cases if not c.equal), None)
        why = self.stopped or (
            "" if different is None else f"Not equal in {different.case}: {different.detail}."
        )
        return f"{left}{why}".strip()

    @property
    def proved(self) -> bool:
        """True if all is moved, and every case is equal."""
        return bool(self.cases) and not self.unmoved and not self.stopped and all(c.equal for c in self.cases)


async def migrate(host: Host, file: KernelFile, target: str, limits: Limits) -> ProvedMigration:
    """Move ``file``, of which the problem says what to run, and compare both on the problem's cases.

    Raises:
        JobFailedError: the original cannot be run.
        HostUnreachableError: the host cannot be reached or was lost.
    """
    assert file.problem.ref is not None
    seen = await _last(host, file, "nki.facts", FactsParams(file.problem.ref, target), limits)
    facts = from_plain(TileFacts, seen)
    moved = migrate_text(file.text, facts.facts)
    cases: list[CaseComparison] = []
    stopped = facts.stopped
    try:
        params = CompareParams(file.problem.ref, moved.text, target)
        answer = await _last(host, file, "nki.compare", params, limits)
        cases = [from_plain(CaseComparison, case) for case in answer["cases"]]
    except JobFailedError as failed:
        stopped = failed.error.message
    else:
        stopped = ""  # a run without values stops where host code reads them; the comparison did not
    return ProvedMigration(moved.text, moved.unmoved, cases, stopped)


async def _last(host: Host, file: KernelFile, step: str, params: Any, limits: Limits) -> Any:
    """Run one step and return its last message."""
    job = Job(file.source(ship_imports=host.remote), [Step(step, "numpy", to_plain(params), limits)])
    value: Any = None
    async with contextlib.aclosing(host.run(job)) as messages:
        async for message in messages:
            value = message.value
    return value
