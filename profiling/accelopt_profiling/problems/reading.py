"""Read a file that may hold a problem, or say plainly why not."""

from __future__ import annotations

import os
from pathlib import Path

MAX_BYTES = 16 << 20


class Unreadable(Exception):
    """Why a file cannot be used, as the end of a sentence that starts with its name; ``code`` is the
    finding's.
    """

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code, self.why = code, why


def read_text(path: Path) -> str:
    """The text of a problem file.

    Raises:
        Unreadable: it is missing, a folder, not allowed to be read, too large, or not UTF-8.
    """
    try:
        if path.is_dir():
            raise Unreadable("problem-invalid", "is a folder; name a Python or JSON file")
        if path.exists() and not path.is_file():
            raise Unreadable("problem-invalid", "is not a regular file")
        if path.stat().st_size > MAX_BYTES:
            raise Unreadable("problem-invalid", f"is larger than {MAX_BYTES >> 20} MiB")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise Unreadable("problem-missing", "does not exist") from None
    except UnicodeDecodeError as error:
        raise Unreadable("not-text", f"is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise Unreadable("problem-invalid", f"cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise Unreadable("problem-invalid", "has a name that no file can have") from None


def followed(path: Path) -> Path:
    """The path with its links followed as far as they lead; as it is where no file can have such a name."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a zero byte, or half a surrogate pair
        return path
