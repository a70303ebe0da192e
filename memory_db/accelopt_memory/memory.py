"""The memory as its callers see it: the editor, the search and the command line use nothing else of this
package."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from accelopt_memory import look, pairs, profile_cache, receipts, refusals, runs, suggestions, transfer
from accelopt_memory.connection import BUSY_SECONDS, Connection
from accelopt_memory.features import KernelFeatures
from accelopt_memory.location import default_path
from accelopt_memory.records import (
    Found,
    Match,
    Pair,
    RecordKind,
    Rejection,
    Run,
    RunEvent,
    RunStatus,
    StoredSuggestion,
    SuggestionState,
    Trap,
)
from accelopt_profiling.receipt import Receipt


class Memory:
    """Everything that was learned, in one SQLite file. When a call that saves has returned, it is on the
    disk.

    Any thread may call; calls are taken one at a time and may wait up to two seconds for another process,
    so an event loop calls through an executor. After a fork, open a new one. Every method raises
    ``MemoryUnavailable`` when the database cannot be used (locked, read-only, corrupt, full disk).
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def open(
        cls, path: Path | None = None, *, read_only: bool = False, busy_seconds: float = BUSY_SECONDS
    ) -> Memory:
        """Open the memory at ``path``, by default ``location.default_path()``; made when missing.

        Read-only, nothing is made: a missing file reads as an empty memory.
        """
        where = (path or default_path()).expanduser().absolute()
        return cls(Connection(where, read_only=read_only, busy_seconds=busy_seconds))

    @property
    def path(self) -> Path:
        return self._connection.path

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Slow-fast pairs

    def add_pair(self, pair: Pair) -> str:
        """Save a pair and return its id; saving the same pair again changes nothing."""
        return pairs.add_pair(self._connection, pair)

    def pairs(self) -> list[Pair]:
        return pairs.all_pairs(self._connection)

    def pair(self, pair_id: str) -> Pair | None:
        return pairs.one_pair(self._connection, pair_id)

    def similar(self, features: KernelFeatures, limit: int = 8, least: float = 0.2) -> list[Match]:
        """The pairs whose slow side looks most like ``features`` (``features.kernel_features``), best
        first."""
        return pairs.similar_pairs(self._connection, features, limit, least)

    # What must not be tried or shown again

    def add_trap(self, trap: Trap) -> str:
        return refusals.add_trap(self._connection, trap)

    def traps(self, kernel_hash: str | None = None) -> list[Trap]:
        return refusals.traps_of(self._connection, kernel_hash)

    def add_rejection(self, rejection: Rejection) -> str:
        return refusals.add_rejection(self._connection, rejection)

    def rejected(self, kernel_hash: str | None = None) -> list[Rejection]:
        return refusals.rejections_of(self._connection, kernel_hash)

    # Runs

    def start_run(
        self,
        file: str,
        kernel: str,
        kernel_hash: str,
        target: str,
        host: str = "local",
        options: dict[str, Any] | None = None,
    ) -> str:
        """Record that a search began and return its id."""
        return runs.start_run(self._connection, file, kernel, kernel_hash, target, host, options or {})

    def add_event(self, run: str, kind: str, data: dict[str, Any], key: str | None = None) -> int:
        """Append an event and return its number, from 1. An event whose ``key`` the run has already is not
        added."""
        return runs.add_event(self._connection, run, kind, data, key)

    def finish_run(
        self, run: str, status: RunStatus = "finished", result: dict[str, Any] | None = None
    ) -> None:
        runs.finish_run(self._connection, run, status, result or {})

    def run(self, run: str) -> Run | None:
        return runs.one_run(self._connection, run)

    def runs(self, kernel_hash: str | None = None, status: RunStatus | None = None) -> list[Run]:
        """Newest first. A run whose process was killed stays "running": that is how a resumed search finds
        it."""
        return runs.all_runs(self._connection, kernel_hash, status)

    def events(self, run: str, after: int = 0) -> list[RunEvent]:
        """The run's events with a number above ``after``, in order."""
        return runs.events_of(self._connection, run, after)

    # Suggestions

    def save_suggestion(self, suggestion: Mapping[str, Any]) -> str:
        """Save a suggestion's plain data (``plain.to_plain``); it needs ``id``, ``file`` and
        ``base_hash``."""
        return suggestions.save_suggestion(self._connection, suggestion)

    def suggestion(self, suggestion: str) -> StoredSuggestion | None:
        return suggestions.one_suggestion(self._connection, suggestion)

    def suggestions(
        self, file: str | None = None, kernel_hash: str | None = None, state: SuggestionState | None = None
    ) -> list[StoredSuggestion]:
        return suggestions.suggestions_for(self._connection, file, kernel_hash, state)

    def set_suggestion_state(self, suggestion: str, state: SuggestionState) -> None:
        suggestions.set_state(self._connection, suggestion, state)

    # Receipts and the profile cache

    def add_receipt(self, receipt: Receipt) -> str:
        return receipts.add_receipt(self._connection, receipt)

    def receipt(self, receipt: str) -> Receipt | None:
        return receipts.one_receipt(self._connection, receipt)

    def cached(self, key: str) -> Any | None:
        """The plain value stored under ``key``; None when there is none, or it was not used for 30 days."""
        return profile_cache.cached(self._connection, key)

    def cache(self, key: str, value: Any) -> bool:
        """Store plain data or dataclasses under ``key``, a hash of everything it depends on; False if too
        large."""
        return profile_cache.cache(self._connection, key, value)

    # Looking in, taking out, moving house

    def stats(self) -> look.Stats:
        return look.stats(self._connection)

    def search(self, text: str, limit: int = 50) -> list[Found]:
        return look.search(self._connection, text, limit)

    def entries(self, id_or_start: str) -> list[tuple[RecordKind, str]]:
        """Kind and id of what an id, or its first four or more characters, means."""
        return look.entries(self._connection, id_or_start)

    def entry(self, kind: RecordKind, entry_id: str) -> Any | None:
        return look.entry(self._connection, kind, entry_id)

    def forget(self, entry_id: str) -> RecordKind | None:
        """Delete the entry with exactly this id and what belongs to it alone; its kind, or None if there
        was none."""
        for kind, found in self.entries(entry_id):
            if found == entry_id and look.forget(self._connection, kind, found):
                return kind
        return None

    def export(self, path: Path) -> int:
        """Write pairs, traps, rejections and receipts to ``path`` as JSON lines; how many."""
        return transfer.export(self._connection, path)

    def import_(self, path: Path) -> dict[str, int]:
        """Add what an export holds; how many new records of each kind. Raises transfer.ImportRefused."""
        return transfer.import_(self._connection, path)


def set_aside(path: Path) -> Path | None:
    """Move a database that cannot be read out of the way, its log with it; where it is now, None if there
    is none.

    Only ever called because a person asked for it.
    """
    if not path.exists():
        return None
    moment = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S%f")
    target = path.with_name(f"{path.name}.set-aside-{moment}")
    for suffix in ("", "-wal", "-shm"):
        if Path(f"{path}{suffix}").exists():
            os.replace(f"{path}{suffix}", f"{target}{suffix}")
    return target
