"""The memory: slow-fast pairs, traps, rejections, suggestions and receipts in one SQLite file.

``Memory`` is what the search, the editor and the command line open. Its parts with a life of their own are
``Memory.run_log`` (searches and their events), ``Memory.outcomes`` (what became of each try), ``Memory.kernels`` (what
the kernels look like that something failed on) and ``Memory.profile_cache``.
"""

from __future__ import annotations

import contextlib
import json
import os
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from accelopt_memory.connection import BUSY_SECONDS, Connection
from accelopt_memory.features import KernelFeatures
from accelopt_memory.location import NOWHERE, default_path
from accelopt_memory.outcomes import OutcomeTable
from accelopt_memory.pair_folder import PairFolder
from accelopt_memory.pair_index import KernelSketches, PairIndex, pair_columns, pair_of_row
from accelopt_memory.profile_cache import ProfileCache
from accelopt_memory.records import (
    LikeFailure,
    Match,
    Pair,
    RecordKind,
    Rejection,
    Run,
    SearchHit,
    Stats,
    StoredSuggestion,
    SuggestionState,
    Trap,
)
from accelopt_memory.rows import from_row, insert_record, now, storable, to_json
from accelopt_memory.run_log import RunLog
from accelopt_profiling.receipt import Receipt

#: The table of each kind of record.
TABLES: dict[RecordKind, str] = {
    "pair": "pairs",
    "trap": "traps",
    "rejection": "rejections",
    "run": "runs",
    "suggestion": "suggestions",
    "receipt": "receipts",
}

#: The SQL expression for a hit's one-line summary; ``t`` is the table.
_SUMMARIES: dict[RecordKind, str] = {
    "pair": "t.summary || CASE t.proved WHEN 1 THEN ' (checked, not accepted)' ELSE '' END",
    "trap": "t.code || ': ' || t.message",
    "rejection": "t.reason",
}

_Refusal = TypeVar("_Refusal", Trap, Rejection)


class Memory:
    """Stores and finds what was learned.

    When a call that saves has returned, its data is on the disk.

    Any thread may call; calls are taken one at a time and may wait up to two seconds for another process, so an
    event loop calls through an executor. After a fork, open a new one. Every method raises
    ``MemoryUnavailableError`` when the database cannot be used (locked, read-only, corrupt, full disk).
    """

    def __init__(self, connection: Connection, folder: PairFolder | None = None) -> None:
        self.connection = connection
        self._folder = folder
        self._folder_stamp: int | None = -1
        self.run_log = RunLog(connection)
        self.profile_cache = ProfileCache(connection)
        self.outcomes = OutcomeTable(connection)
        self.kernels = KernelSketches(connection)
        self._index = PairIndex()

    @classmethod
    def open(
        cls,
        path: Path | None = None,
        *,
        read_only: bool = False,
        busy_seconds: float = BUSY_SECONDS,
        project: Path | None = None,
    ) -> Memory:
        """Open the database at ``path``, by default ``location.default_path()``; created when missing.

        Read-only, nothing is created: a missing file reads as an empty memory. Its accepted pairs are also files below
        the root of ``project``, and those that stand there are pairs of the memory (``refresh``).
        """
        where = path if path == NOWHERE else (path or default_path()).expanduser().absolute()
        connection = Connection(where, read_only=read_only, busy_seconds=busy_seconds)
        return cls(connection, PairFolder(project) if project is not None else None)

    @property
    def path(self) -> Path:
        return self.connection.path

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all saves inside the block one transaction: when the block ends all of them are on the disk; after an
        exception in it, or a kill, none of them is. Other threads wait."""
        with self.connection.writing():
            yield

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def refresh(self) -> list[str]:
        """Take in the pairs of the project's folder that came since the last time, and drop imported ones whose files
        are gone; return the files that cannot be read, with the reason."""
        if self._folder is None or (stamp := self._folder.stamp) == self._folder_stamp:
            return []
        with self.connection.writing() as db:
            ids = self._folder.ids()
            present = dict(db.execute("SELECT id, imported FROM pairs WHERE proved = 0").fetchall())
            for gone in [name for name, imported in present.items() if imported and name not in set(ids)]:
                db.execute("DELETE FROM pairs WHERE id = ?", [gone])
            content = self._folder.read(name for name in ids if name not in present)
            for pair in content.pairs:
                insert_record(db, "pairs", pair, **pair_columns(pair))
        self._folder_stamp = stamp
        return list(content.unread)

    # Slow-fast pairs

    def add_pair(self, pair: Pair) -> str:
        """Save a pair and return its id. Saving the same pair again changes nothing."""
        with self.connection.writing() as db:
            added = insert_record(db, "pairs", pair, **pair_columns(pair))
            if self._folder is not None and not pair.checked:
                self._folder.write(pair)
        return added

    def pairs(self, checked: bool = False) -> list[Pair]:
        """Return the accepted pairs, oldest first. With ``checked`` those too that were only checked."""
        query = "SELECT * FROM pairs WHERE proved <= ? ORDER BY number"
        with self.connection.reading() as db:
            return [pair_of_row(row) for row in db.query(query, [int(checked)])]

    def withdraw_unaccepted(self, pair_id: str) -> None:
        """Delete a pair that nobody accepted; an accepted one stays. Its receipts stay too."""
        with self.connection.writing() as db:
            db.execute("DELETE FROM pairs WHERE id = ? AND proved = 1", [pair_id])

    def pair(self, pair_id: str) -> Pair | None:
        with self.connection.reading() as db:
            rows = [pair_of_row(row) for row in db.query("SELECT * FROM pairs WHERE id = ?", [pair_id])]
        return rows[0] if rows else None

    def similar(self, features: KernelFeatures, limit: int = 8, least: float = 0.2) -> list[Match]:
        """Return the pairs of the same dialect whose slow side is at least ``least`` similar to ``features``
        (``features.kernel_features``), most similar first, ties by id. The pairs with the nearest sketches are compared
        (``pair_index``)."""
        with self.connection.reading() as db:
            near = {n: score for n, score in self._index.nearest(db, features, limit) if score >= least}
            marks = ", ".join("?" * len(near))
            rows = db.query(f"SELECT * FROM pairs WHERE number IN ({marks})", list(near))
            matches = [Match(pair_of_row(row), near[row["number"]]) for row in rows]
        return sorted(matches, key=lambda m: (-m.score, m.pair.id))

    def set_lesson(self, pair_id: str, lesson: str) -> None:
        """Store what the summarizer said about a pair. Without such a pair nothing happens."""
        with self.connection.writing() as db:
            db.execute("UPDATE pairs SET lesson = ? WHERE id = ?", [storable(lesson), pair_id])

    def newest_pairs(self, dialect: str, limit: int) -> list[Pair]:
        """Return the newest pairs of a dialect, oldest first."""
        query = "SELECT * FROM pairs WHERE dialect = ? ORDER BY number DESC LIMIT ?"
        with self.connection.reading() as db:
            return [pair_of_row(row) for row in reversed(db.query(query, [dialect, limit]))]

    # Traps and rejections

    def failures_like(
        self, features: KernelFeatures, limit: int = 32, least: float = 0.3
    ) -> list[LikeFailure]:
        """Return the newest known failures of kernels that are at least ``least`` similar to ``features``, those of
        the most similar kernel first."""
        near = self.kernels.nearest(features, limit, least)
        failures = [
            LikeFailure(trap, score) for kernel, score in near for trap in reversed(self.traps(kernel))
        ]
        return failures[:limit]

    def add_trap(self, trap: Trap) -> str:
        with self.connection.writing() as db:
            return insert_record(db, "traps", trap)

    def set_trap_message(self, trap_id: str, message: str) -> None:
        """Say why the rewrite of a trap is no good. A trap that is not there stays so."""
        with self.connection.writing() as db:
            db.execute("UPDATE traps SET message = ? WHERE id = ?", [storable(message), trap_id])

    def traps(self, kernel_hash: str | None = None) -> list[Trap]:
        """Oldest first; of every kernel when ``kernel_hash`` is None."""
        return self._refusals(Trap, "traps", kernel_hash)

    def add_rejection(self, rejection: Rejection) -> str:
        with self.connection.writing() as db:
            return insert_record(db, "rejections", rejection)

    def rejected(self, kernel_hash: str | None = None) -> list[Rejection]:
        """Oldest first; of every kernel when ``kernel_hash`` is None."""
        return self._refusals(Rejection, "rejections", kernel_hash)

    def _refusals(self, cls: type[_Refusal], table: str, kernel_hash: str | None) -> list[_Refusal]:
        where, values = (
            ("", []) if kernel_hash is None else ("WHERE kernel_hash = ?", [storable(kernel_hash)])
        )
        with self.connection.reading() as db:
            rows = db.query(f"SELECT * FROM {table} {where} ORDER BY number", values)
            return [from_row(cls, row) for row in rows]

    # Suggestions: saved by the search, so that an id means the same after a restart and in another program

    def save_suggestion(self, suggestion: Mapping[str, Any], state: SuggestionState | None = None) -> str:
        """Save a suggestion's plain data (``plain.to_plain``) under its own ``id``.

        Saved again, its data is replaced, and its state only where ``state`` is given; a new one is "offered".

        Raises:
            ValueError: it lacks ``id``, ``file`` or ``base_hash``.
        """
        missing = [name for name in ("id", "file", "base_hash") if not isinstance(suggestion.get(name), str)]
        if missing:
            raise ValueError(f"A suggestion needs {', '.join(missing)} to be saved.")
        texts = [storable(str(suggestion.get(name, ""))) for name in ("id", "run", "file", "base_hash")]
        with self.connection.writing() as db:
            db.execute(
                "INSERT INTO suggestions (id, run, file, kernel_hash, state, body_json, created) "
                "VALUES (?, ?, ?, ?, 'offered', ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET body_json = excluded.body_json",
                [*texts, to_json(dict(suggestion)), now()],
            )
            if state is not None:
                db.execute("UPDATE suggestions SET state = ? WHERE id = ?", [state, texts[0]])
        return texts[0]

    def suggestion(self, suggestion: str) -> StoredSuggestion | None:
        with self.connection.reading() as db:
            rows = [_stored(row) for row in db.query("SELECT * FROM suggestions WHERE id = ?", [suggestion])]
        return rows[0] if rows else None

    def suggestions(
        self, file: str | None = None, kernel_hash: str | None = None, state: SuggestionState | None = None
    ) -> list[StoredSuggestion]:
        """Oldest first; None means any."""
        query = (
            "SELECT * FROM suggestions WHERE (:file IS NULL OR file = :file) "
            "AND (:hash IS NULL OR kernel_hash = :hash) AND (:state IS NULL OR state = :state) ORDER BY number"
        )
        values = {"file": None if file is None else storable(file), "hash": kernel_hash, "state": state}
        with self.connection.reading() as db:
            return [_stored(row) for row in db.query(query, values)]

    def suggestions_by_pair(self) -> dict[str, list[StoredSuggestion]]:
        """Return by the id of a pair the suggestions with a step that repeats it, oldest first."""
        with self.connection.reading() as db:
            rows = db.query("SELECT * FROM suggestions WHERE instr(body_json, '\"memory:') ORDER BY number")
            stored = [_stored(row) for row in rows]
        by_pair: dict[str, list[StoredSuggestion]] = {}
        for suggestion in stored:
            for step in dict.fromkeys(suggestion.body.get("steps", ())):
                kind, _, pair = step.partition(":")
                if kind == "memory":
                    by_pair.setdefault(pair, []).append(suggestion)
        return by_pair

    def set_suggestion_state(self, suggestion: str, state: SuggestionState) -> None:
        """Raises KeyError: there is no such suggestion."""
        with self.connection.writing() as db:
            if not db.execute("UPDATE suggestions SET state = ? WHERE id = ?", [state, suggestion]).rowcount:
                raise KeyError(f"The memory has no suggestion {suggestion}.")

    # Receipts: the evidence behind numbers and verdicts, by the hash of their content

    def add_receipt(self, receipt: Receipt) -> str:
        with self.connection.writing() as db:
            row = {
                "id": receipt.id,
                "kind": receipt.kind,
                "body_json": receipt.body_text,
                "created": now(),
            }
            db.insert("receipts", row, "IGNORE")
        return receipt.id

    def receipt(self, receipt: str) -> Receipt | None:
        with self.connection.reading() as db:
            row = db.execute("SELECT kind, body_json FROM receipts WHERE id = ?", [receipt]).fetchone()
        return Receipt(row[0], json.loads(row[1])) if row else None

    # Looking up and deleting entries of any kind

    def stats(self) -> Stats:
        with self.connection.reading() as db:
            tables = ("pairs", "traps", "rejections", "runs", "receipts")
            count = {
                table: int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables
            }
            unaccepted = int(db.execute("SELECT count(*) FROM pairs WHERE proved = 1").fetchone()[0])
        files = (self.path, Path(f"{self.path}-wal"))
        return Stats(
            path=str(self.path),
            pairs=count["pairs"] - unaccepted,
            traps=count["traps"],
            rejected=count["rejections"],
            runs=count["runs"],
            receipts=count["receipts"],
            bytes=sum(file.stat().st_size for file in files if file.exists()),
            checked=unaccepted,
        )

    def search(self, text: str, limit: int = 50) -> list[SearchHit]:
        """Return pairs, traps and rejections that hold every word of ``text``, best first within each kind."""
        words = _words(text)
        if not words:
            return []
        hits: list[SearchHit] = []
        with self.connection.reading() as db:
            for kind, summary in _SUMMARIES.items():
                table = TABLES[kind]
                rows = db.execute(
                    f"SELECT t.id, t.kernel, {summary}, t.created "
                    f"FROM {table} t JOIN {table}_fts f ON t.number = f.rowid "
                    f"WHERE {table}_fts MATCH ? ORDER BY f.rank, t.id LIMIT ?",
                    [" ".join(f'"{word}"' for word in words[:32]), limit],
                ).fetchall()
                hits += [SearchHit(kind, *row) for row in rows]
        return hits[:limit]

    def entries(self, id_or_start: str) -> list[tuple[RecordKind, str]]:
        """Return the kind and full id of every entry whose id is, or begins with, ``id_or_start`` (at least
        four characters)."""
        if len(id_or_start) < 4:
            return []
        pattern = storable(id_or_start).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        with self.connection.reading() as db:
            return [
                (kind, row[0])
                for kind, table in TABLES.items()
                for row in db.execute(
                    f"SELECT id FROM {table} WHERE id LIKE ? ESCAPE '\\' LIMIT 50", [pattern]
                )
            ]

    def entry(self, kind: RecordKind, entry_id: str) -> Any | None:
        """Return the record itself, as its dataclass; None when there is none."""
        if kind == "suggestion":
            return self.suggestion(entry_id)
        if kind == "receipt":
            return self.receipt(entry_id)
        classes: dict[str, type[Any]] = {"pair": Pair, "trap": Trap, "rejection": Rejection, "run": Run}
        with self.connection.reading() as db:
            rows = list(db.query(f"SELECT * FROM {TABLES[kind]} WHERE id = ?", [entry_id]))
        if rows and kind == "pair":
            return pair_of_row(rows[0])
        return from_row(classes[kind], rows[0]) if rows else None

    def forget(self, entry_id: str) -> RecordKind | None:
        """Delete the entry with exactly this id, with a pair the receipts that no other pair has, and with a run its
        events and suggestions. Returns the entry's kind, or None if there was none."""
        for kind, full_id in self.entries(entry_id):
            if full_id == entry_id and self._delete(kind, full_id):
                return kind
        return None

    def _delete(self, kind: RecordKind, entry_id: str) -> bool:
        with self.connection.writing() as db:
            if kind == "pair":
                if self._folder is not None:
                    self._folder.remove(entry_id)
                evidence = "SELECT r.value FROM pairs, json_each(receipts_json) r WHERE pairs.id"
                db.execute(
                    f"DELETE FROM receipts WHERE id IN ({evidence} = ?) AND id NOT IN ({evidence} <> ?)",
                    [entry_id, entry_id],
                )
            elif kind == "run":
                db.execute("DELETE FROM run_events WHERE run = ?", [entry_id])
                db.execute("DELETE FROM suggestions WHERE run = ?", [entry_id])
            return bool(db.execute(f"DELETE FROM {TABLES[kind]} WHERE id = ?", [entry_id]).rowcount)


def set_aside(path: Path) -> Path | None:
    """Rename a database that cannot be read, together with its write-ahead log, and return the new path; None if
    there is no database.

    Called only when a person asked for it.
    """
    if not path.exists():
        return None
    moment = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S%f")
    target = path.with_name(f"{path.name}.set-aside-{moment}")
    for suffix in ("", "-wal", "-shm"):
        if Path(f"{path}{suffix}").exists():
            os.replace(f"{path}{suffix}", f"{target}{suffix}")
    return target


def _words(text: str) -> list[str]:
    """Return the words of a text as the text index divides it, which knows the letters and digits of Unicode 3.2 at
    least. (It knows no phrases: what it would divide is an error in a query.)"""
    kind = unicodedata.ucd_3_2_0.category
    return "".join(c if kind(c)[0] in "LN" else " " for c in unicodedata.normalize("NFC", text)).split()


def _stored(row: Mapping[str, Any]) -> StoredSuggestion:
    return StoredSuggestion(row["id"], json.loads(row["body_json"]), row["state"], row["created"])
