"""Keeps the outcome of every rewrite that was tried.

From it follow what to expect of the next one, and whether searches got shorter.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from accelopt_memory.connection import Connection
from accelopt_memory.records import content_id
from accelopt_memory.rows import from_row, now, storable_record, to_row

#: A log ratio counts for no more than these: one lucky kernel must not decide, nor one that got ten times slower.
LEAST_LOG, MOST_LOG = math.log(0.25), math.log(1.25)
#: The logarithm of time after over time before from which on an item is taken to have helped.
HELPED_LOG = math.log(0.99)
#: Each level of the estimate counts as so many tasks of the level below it.
SHRINKAGE = 2.0
#: What is hoped of an item counts as so many tasks, and each of its tries in the search that asks as so many.
HOPE_TASKS, HERE_TASKS = 8.0, 2.0
#: What is expected of a dialect of which nothing is known, and how much (in logarithms) an item is favoured that was
#: never tried.
PRIOR_LOG, UNTRIED_LOG = math.log(0.97), math.log(0.98)


@dataclass(frozen=True)
class Outcome:
    """One try of an item: "rule:NAME", "edit:ID", "sequence:..." or "model:NAME".

    ``task`` is the content hash of the kernel that the search began with, ``bound`` what limits the version that the
    item was tried on, ``log_ratio`` the logarithm of time after over time before (None where it failed), ``rewrite``
    the fingerprint of what was made. ``accepted``, ``edited`` and ``undone`` tell what a person did with it.
    """

    item: str
    task: str
    bound: str | None
    dialect: str
    target: str
    log_ratio: float | None
    rewrite: str = ""
    failed: bool = False
    accepted: bool = False
    edited: bool = False
    undone: bool = False
    created: str = ""

    @property
    def id(self) -> str:
        return content_id("outcome", self.item, self.task, self.bound or "", self.target, self.rewrite)

    @property
    def helped(self) -> bool:
        return (
            not self.failed and not self.undone and self.log_ratio is not None and self.log_ratio < HELPED_LOG
        )

    @property
    def vote(self) -> tuple[float, float]:
        """Its clipped log ratio and its weight.

        A failure gained nothing, an accepted one counts double, and one that was undone counts against the item by what
        it had gained.
        """
        value = 0.0 if self.log_ratio is None or self.failed else self.log_ratio
        value = max(LEAST_LOG, min(MOST_LOG, value))
        if self.undone:
            return min(MOST_LOG, abs(value)), 2.0
        return value, 2.0 if self.accepted else 1.0


@dataclass(frozen=True)
class ItemSummary:
    """All outcomes of one item: how many tasks and tries, how many failed, were accepted and undone, and the
    ``expected`` time after over time before, whatever bounds the kernel and on any target."""

    item: str
    dialect: str
    tasks: int
    tries: int
    failed: int
    accepted: int
    undone: int
    expected: float


@dataclass(frozen=True)
class OutcomePrior:
    """Expectations from the outcomes of one dialect: means of clipped log ratios with one vote for each task, shrunk
    from (item, bound, target) to (item, bound), to the item, to the dialect. The same outcomes give the same
    numbers."""

    outcomes: Sequence[Outcome] = field(repr=False)

    @cached_property
    def _groups(self) -> dict[tuple[str | None, ...], list[tuple[float, float]]]:
        """The votes of the tasks by level."""
        per_task: dict[tuple[tuple[str | None, ...], str], list[tuple[float, float]]] = defaultdict(list)
        for one in self.outcomes:
            for level in _levels(one.item, one.bound, one.target):
                per_task[level, one.task].append(one.vote)
        groups: dict[tuple[str | None, ...], list[tuple[float, float]]] = defaultdict(list)
        for (level, _), votes in sorted(per_task.items(), key=lambda entry: repr(entry[0])):
            total = math.fsum(weight for _, weight in votes)
            mean = math.fsum(value * weight for value, weight in votes) / total
            groups[level].append((mean, max(weight for _, weight in votes)))
        return dict(groups)

    def knows(self, item: str) -> bool:
        return (item,) in self._groups

    def expected(self, item: str, bound: str | None, target: str) -> float:
        """Return the expected time after over time before. An item never tried gets a small bonus."""
        estimate = self._shrunk(PRIOR_LOG, SHRINKAGE, ())
        estimate = self._narrowed(self._shrunk(estimate, SHRINKAGE, (item,)), item, bound, target)
        return math.exp(estimate if self.knows(item) else estimate + UNTRIED_LOG)

    def expected_here(
        self, item: str, bound: str | None, target: str, hope: float, tries: Sequence[float] = ()
    ) -> float:
        """Return the expected time after over time before within a search that has a ``hope`` of its own, such as the
        place in the catalogue gives, and has seen ``tries`` of the item, as ratios. The estimate starts at the hope and
        moves with what other tasks and these tries brought; a try that was slower, or failed, gained nothing."""
        estimate = self._narrowed(self._shrunk(math.log(hope), HOPE_TASKS, (item,)), item, bound, target)
        gained = math.fsum(max(LEAST_LOG, min(0.0, math.log(ratio))) for ratio in tries)
        weight = HERE_TASKS * len(tries)
        return math.exp((SHRINKAGE * estimate + HERE_TASKS * gained) / (SHRINKAGE + weight))

    def _narrowed(self, estimate: float, item: str, bound: str | None, target: str) -> float:
        """Return the estimate for an item moved to that for the bound, then to that for the target besides."""
        for level in ((item, bound), (item, bound, target)):
            estimate = self._shrunk(estimate, SHRINKAGE, level)
        return estimate

    def _shrunk(self, estimate: float, tasks: float, level: tuple[str | None, ...]) -> float:
        """Return the mean of the votes of a level and of ``estimate``, which counts as so many tasks."""
        votes = self._groups.get(level, [])
        weight = math.fsum(w for _, w in votes)
        return (tasks * estimate + math.fsum(v * w for v, w in votes)) / (tasks + weight)


def _levels(item: str, bound: str | None, target: str) -> tuple[tuple[str | None, ...], ...]:
    return (item, bound, target), (item, bound), (item,), ()


class OutcomeTable:
    """The outcomes in one database. Threads and errors as in ``memory.Memory``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, outcome: Outcome) -> None:
        """Save an outcome; the same try saved again changes nothing."""
        with self._connection.writing() as db:
            record = storable_record(outcome)
            row = to_row(record, id=record.id) | {"created": record.created or now()}
            db.insert("outcomes", row, "IGNORE")

    def mark(
        self,
        items: Iterable[str],
        task: str,
        target: str,
        *,
        accepted: bool,
        edited: bool = False,
        undone: bool = False,
    ) -> None:
        """Note a person's decision at the outcomes of ``items`` on one task.

        ``edited``: accepted after changes.
        """
        with self._connection.writing() as db:
            for item in items:
                db.execute(
                    "UPDATE outcomes SET accepted = ?, edited = ?, undone = ? WHERE item = ? AND task = ? "
                    "AND target = ? AND failed = 0",
                    [int(accepted), int(edited), int(undone), item, task, target],
                )

    def refuse(self, task: str, target: str, rewrite: str) -> None:
        """Note that the gate refused a rewrite: its time counts for nothing."""
        with self._connection.writing() as db:
            db.execute(
                "UPDATE outcomes SET failed = 1 WHERE task = ? AND target = ? AND rewrite = ?",
                [task, target, rewrite],
            )

    def all(self, dialect: str | None = None) -> list[Outcome]:
        """Oldest first; None means of every dialect."""
        query = "SELECT * FROM outcomes WHERE (:dialect IS NULL OR dialect = :dialect) ORDER BY number"
        with self._connection.reading() as db:
            return [from_row(Outcome, row) for row in db.query(query, {"dialect": dialect})]

    def prior(self, dialect: str) -> OutcomePrior:
        return OutcomePrior(self.all(dialect))

    def summaries(self) -> list[ItemSummary]:
        """Return every item that was tried, the most promising of each dialect first."""
        by_dialect: dict[str, list[Outcome]] = defaultdict(list)
        for one in self.all():
            by_dialect[one.dialect].append(one)
        summaries = []
        for dialect, outcomes in sorted(by_dialect.items()):
            prior = OutcomePrior(outcomes)
            rows = []
            for item in sorted({o.item for o in outcomes}):
                mine = [o for o in outcomes if o.item == item]
                rows.append(
                    ItemSummary(
                        item,
                        dialect,
                        tasks=len({o.task for o in mine}),
                        tries=len(mine),
                        failed=sum(o.failed for o in mine),
                        accepted=sum(o.accepted for o in mine),
                        undone=sum(o.undone for o in mine),
                        expected=prior.expected(item, None, ""),
                    )
                )
            summaries += sorted(rows, key=lambda row: (row.expected, row.item))
        return summaries


#: The mean at a kernel is over it and so many before it.
WINDOW = 5


@dataclass(frozen=True)
class KernelTries:
    """The ``tries`` on one kernel and target, and which of them (from 1) was the ``first_gain``, if any; ``mean`` is
    that of the kernels up to this one, a kernel without a gain counting with all of its tries."""

    task: str
    target: str
    began: str
    tries: int
    first_gain: int | None
    mean: float


def learning_curve(outcomes: Sequence[Outcome]) -> list[KernelTries]:
    """Return the kernels in the order in which they were first searched. ``outcomes`` are oldest first."""
    tried: dict[tuple[str, str], list[Outcome]] = {}
    for one in outcomes:
        tried.setdefault((one.task, one.target), []).append(one)
    curve: list[KernelTries] = []
    needed: list[int] = []
    for (task, target), tries in tried.items():
        gain = next((number for number, one in enumerate(tries, 1) if one.helped), None)
        needed.append(gain or len(tries))
        curve.append(
            KernelTries(
                task,
                target,
                began=tries[0].created,
                tries=len(tries),
                first_gain=gain,
                mean=fmean(needed[-WINDOW - 1 :]),
            )
        )
    return curve
