"""One open database: its pragmas, its transactions and its lock.

Thread rule: any thread may use a ``Connection``; calls are taken one at a time, and a call may wait up to
the busy timeout for another process. So an event loop must call through an executor. A connection does not
survive a fork: open a new one in the child.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from accelopt_memory.errors import MemoryUnavailableError, explain
from accelopt_memory.location import NOWHERE
from accelopt_memory.rows import Database

#: Seconds to wait for another process that is writing; its transactions take milliseconds.
BUSY_SECONDS = 2.0

#: Of a new database. A row with its sources takes some 1,500 bytes: of pages of SQLite's 4,096 a tenth would be empty.
PAGE_BYTES = 16384

NEWEST_MIGRATION = "m016_words_alone"


class Connection:
    """The database at ``path``, created and migrated when ``read_only`` is false.

    ``location.NOWHERE`` is a database in this process alone. Read-only, a file that does not exist reads as an empty
    memory and is not created, and a file of an older version is migrated in a copy that lives in memory. A file that
    may be read and not written is opened read-only whatever was asked for: then only saving fails.

    Raises:
        MemoryUnavailableError: it is locked, corrupt, not writable, out of reach, or its disk is full.
    """

    def __init__(self, path: Path, *, read_only: bool = False, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path, self.read_only = path, read_only
        self._busy_seconds = busy_seconds
        self._lock = threading.RLock()
        try:
            self._db = self._open()
        except MemoryUnavailableError:
            if read_only or not _only_readable(path):
                raise
            self.read_only = True
            self._db = self._open()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Database]:
        """Yield the database for reads; no other thread uses it meanwhile."""
        with self._lock, self._translated():
            self._reopen_if_replaced()
            yield self._db

    @contextlib.contextmanager
    def writing(self) -> Iterator[Database]:
        """Yield the database inside a transaction: when the outermost block ends, all of it is on the disk; after an
        exception, none of it. A block within another one belongs to the outer transaction."""
        if self.read_only:
            raise MemoryUnavailableError("read-only", self.path, "it was opened for reading only")
        with self._lock, self._translated():
            self._reopen_if_replaced()
            with _immediate(self._db):
                yield self._db

    def close(self) -> None:
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._db.conn.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if explained := explain(error, self.path):
                raise explained from error
            if str(error).startswith("no such") and (newer := _newer_migrations(self._db)):
                raise MemoryUnavailableError(
                    "newer", self.path, f"{error}; it has {', '.join(newer)}"
                ) from error
            raise

    def checkpoint(self) -> None:
        """Bring what is in the write-ahead log into the file itself."""
        with self.reading() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _reopen_if_replaced(self) -> None:
        """Open again when the file was deleted or replaced: what is written to it then would be lost."""
        if self.read_only or self._db.conn.in_transaction or _file_id(self.path) == self._file_id:
            return
        before = self._db.conn
        self._db = self._open()
        before.close()

    def _open(self) -> Database:
        try:
            db = self._open_to_read() if self.read_only else self._open_to_write()
        except (sqlite3.Error, OSError) as error:
            if explained := explain(error, self.path):
                raise explained from error
            raise
        self._file_id = _file_id(self.path)
        return db

    def _open_to_write(self) -> Database:
        if self.path == NOWHERE:
            return _migrated(Database(sqlite3.connect(":memory:", check_same_thread=False)))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # kernels are private
        db = self._connect(str(self.path))
        try:
            db.execute(f"PRAGMA page_size={PAGE_BYTES}")
            self._switch_to_log(db)
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA secure_delete=ON")
            if not _is_current(db):
                with _immediate(db):  # of several programs that open an old file at once, one migrates
                    _migrate(db)
        except BaseException:
            db.conn.close()
            raise
        return db

    def _switch_to_log(self, db: Database) -> None:
        """Keep changes in a write-ahead log.

        Where another program writes the same new file, SQLite refuses the switch without waiting (it holds a lock that
        the other one waits for), so the waiting is done here.
        """
        end = time.monotonic() + self._busy_seconds
        while True:
            try:
                db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
            time.sleep(0.005)

    def _open_to_read(self) -> Database:
        if not self.path.exists():
            return _migrated(Database(sqlite3.connect(":memory:", check_same_thread=False)))
        # Nobody can write into a folder that we cannot write into, and SQLite could not make its shared
        # memory there.
        alone = not os.access(self.path.parent, os.W_OK) and not Path(f"{self.path}-wal").exists()
        db = self._connect(f"{self.path.as_uri()}?mode=ro" + ("&immutable=1" if alone else ""))
        if _is_current(db):
            return db
        copy = sqlite3.connect(":memory:", check_same_thread=False)
        db.conn.backup(copy)
        db.conn.close()
        return _migrated(Database(copy))

    def _connect(self, where: str) -> Database:
        connection = sqlite3.connect(
            where, timeout=self._busy_seconds, check_same_thread=False, uri=where.startswith("file:")
        )
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # fails if it is no database
            return Database(connection)
        except sqlite3.Error:
            connection.close()
            raise


def _only_readable(path: Path) -> bool:
    """Return whether we may read the database and not write it, or not into its folder, as SQLite needs to."""
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return path.is_file() and os.access(path, os.R_OK) and not writable


@contextlib.contextmanager
def _immediate(db: Database) -> Iterator[None]:
    """Begin a transaction that takes the write lock at once, so that it never fails half-way because another one wrote;
    inside a transaction, do nothing."""
    if db.conn.in_transaction:
        yield
        return
    db.conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.conn.execute("COMMIT")
    except BaseException:
        if db.conn.in_transaction:
            db.conn.execute("ROLLBACK")
        raise


def _is_current(db: Database) -> bool:
    """Return whether every migration of this version was applied, which are applied in order."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchone():
        return False
    query = "SELECT 1 FROM _sqlite_migrations WHERE migration_set = 'accelopt' AND name = ?"
    return db.execute(query, [NEWEST_MIGRATION]).fetchone() is not None


def _newer_migrations(db: Database) -> list[str]:
    """Return the migrations that this version does not know, by name."""
    query = "SELECT name FROM _sqlite_migrations WHERE migration_set = 'accelopt' AND name > ? ORDER BY name"
    try:
        return [row[0] for row in db.execute(query, [NEWEST_MIGRATION])]
    except sqlite3.Error:
        return []


def _migrate(db: Database) -> None:
    """Apply what is missing. Sqlite-utils is imported for this alone, as it takes a fifth of a second."""
    import sqlite_utils

    from accelopt_memory.migrations import migrations

    migrations.apply(sqlite_utils.Database(db.conn, execute_plugins=False))


def _migrated(db: Database) -> Database:
    _migrate(db)
    return db


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
