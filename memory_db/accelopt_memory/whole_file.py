"""Writes a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


@contextlib.contextmanager
def whole_file(path: Path, mode: int = 0o600, encoding: str = "utf-8") -> Iterator[TextIO]:
    """Yield a file for text that takes the place of ``path`` when the block ends, and is on the disk then; after an
    exception, what was there is untouched. Line ends are written as they are.

    Raises:
        OSError: the file cannot be written.
    """
    import tempfile  # which takes 4 ms that a start has no time for

    handle, temporary = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding=encoding, newline="") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
