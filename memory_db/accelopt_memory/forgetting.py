"""Forgets what stopped helping and, beyond a budget of size, what is of least use; never what a person decided."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import Outcome
from accelopt_memory.rows import Database

#: An edit stopped helping when it helped on none of so many kernels, the last ones that it was tried on.
STOPPED = 6
#: The bytes that a memory may hold, its profile cache included; what is taken away at a time beyond them, as a share.
BUDGET_BYTES, SHARE = 512 << 20, 0.1

#: What goes beyond the budget, in this order: the table, its key, and the rows that may go, the first one first.
_OF_LEAST_USE = (
    ("run_events", "rowid", "run IN (SELECT id FROM runs WHERE status <> 'running') ORDER BY created"),
    ("suggestions", "number", "state = 'offered' ORDER BY created"),
    ("traps", "number", "1 ORDER BY imported DESC, created"),
    ("outcomes", "number", "accepted = 0 AND undone = 0 ORDER BY created"),
    ("pairs", "number", "proved = 1 ORDER BY created"),
    ("receipts", "number", "id NOT IN (SELECT r.value FROM pairs, json_each(receipts_json) r) ORDER BY created"),
)  # fmt: skip


@dataclass(frozen=True)
class Forgotten:
    """``withdrawn`` counts the pairs that nobody accepted and whose edit stopped helping, ``examples`` the accepted
    ones that are still shown and no longer applied; ``deleted`` the rows that went for want of room, by table."""

    withdrawn: int = 0
    examples: int = 0
    deleted: dict[str, int] = field(default_factory=dict)


def tidy(memory: Memory, budget_bytes: int = BUDGET_BYTES) -> Forgotten:
    """Forget what stopped helping, then what is of least use until the memory fits its budget. Accepted pairs and
    rejections stay, whatever the budget. The file keeps its size; what is free in it is used again.

    Raises:
        MemoryUnavailableError: nothing was changed.
    """
    stopped = stopped_edits(memory.outcomes.all())
    with memory.connection.writing() as db:
        marks = ", ".join("?" * len(stopped))
        withdrawn = db.execute(f"DELETE FROM pairs WHERE proved = 1 AND edit IN ({marks})", stopped).rowcount
        examples = db.execute(
            f"UPDATE pairs SET example = 1 WHERE example = 0 AND edit IN ({marks})", stopped
        ).rowcount
        return Forgotten(withdrawn, examples, _deleted(db, budget_bytes))


def stopped_edits(outcomes: list[Outcome]) -> list[str]:
    """Return the ids of the edits that helped on none of the last ``STOPPED`` kernels that they were tried on;
    ``outcomes`` are oldest first."""
    helped: dict[str, dict[str, bool]] = defaultdict(dict)
    for one in outcomes:
        if one.item.startswith("edit:"):
            tasks = helped[one.item]
            tasks[one.task] = tasks.pop(one.task, False) or one.helped  # the newest task is the last
    return [
        item.removeprefix("edit:")
        for item, tasks in sorted(helped.items())
        if len(tasks) >= STOPPED and not any(list(tasks.values())[-STOPPED:])
    ]


def _deleted(db: Database, budget_bytes: int) -> dict[str, int]:
    deleted: dict[str, int] = {}
    for table, key, which in _OF_LEAST_USE:
        while _bytes(db) > budget_bytes:
            count = int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            gone = db.execute(
                f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {which} LIMIT ?)",
                [max(1, int(SHARE * count))],
            ).rowcount
            if not gone:
                break
            deleted[table] = deleted.get(table, 0) + gone
    return deleted


def _bytes(db: Database) -> int:
    pages, free, size = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
