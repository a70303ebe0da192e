"""Translates SQLite's and the file system's errors into one error: the problem, the file, and a remedy."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import Literal

#: Why the memory cannot be used. Stable: the editor and the command line choose their words by it.
Trouble = Literal["locked", "read-only", "corrupt", "disk-full", "unreachable", "newer"]

_ADVICE: dict[Trouble, str] = {
    "locked": "Another program holds it; close that program (a database browser, perhaps) and try again.",
    "read-only": "Give yourself write permission, or set ACCELOPT_DB to a file you may write.",
    "corrupt": "Run `accelopt memory repair` to keep what can be read, or `accelopt memory set-aside` to begin anew.",
    "disk-full": "Free some space on that disk, or set ACCELOPT_DB to a file on another one.",
    "newer": "A newer AccelOpt made it: update AccelOpt, or set ACCELOPT_DB to another file.",
    "unreachable": "Check that the folder exists and is yours, or set ACCELOPT_DB to another file.",
}

#: What SQLite says, in its own words (`sqlite_errorcode` needs Python 3.11), and which trouble that is.
_SQLITE_MESSAGES: tuple[tuple[str, Trouble], ...] = (
    ("locked", "locked"),
    ("readonly", "read-only"),
    ("not a database", "corrupt"),
    ("malformed", "corrupt"),
    ("disk is full", "disk-full"),
    ("unable to open", "unreachable"),
    ("disk i/o error", "unreachable"),
)


class MemoryUnavailableError(Exception):
    """The database cannot be used now. Everything that does not need it goes on working."""

    def __init__(self, trouble: Trouble, path: Path, detail: str) -> None:
        super().__init__(f"The memory {path} cannot be used ({trouble}: {detail}). {_ADVICE[trouble]}")
        self.trouble, self.path, self.detail = trouble, path, detail


def explain(error: sqlite3.Error | OSError, path: Path) -> MemoryUnavailableError | None:
    """Return the error to raise in place of ``error``. None when it is a mistake in our code."""
    message = str(error).lower()
    if isinstance(error, sqlite3.Error):
        for part, trouble in _SQLITE_MESSAGES:
            if part in message:
                return MemoryUnavailableError(trouble, path, str(error))
        return (
            MemoryUnavailableError("corrupt", path, str(error))
            if type(error) is sqlite3.DatabaseError
            else None
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return MemoryUnavailableError("disk-full", path, str(error))
    if isinstance(error, PermissionError):
        return MemoryUnavailableError("read-only", path, str(error))
    return MemoryUnavailableError("unreachable", path, str(error))
