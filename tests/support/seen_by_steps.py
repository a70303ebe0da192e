"""A folder that a step sees from inside its sandbox, for tests that tell one something while it runs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def seen_by_steps() -> Iterator[Path]:
    """A new folder beside the interpreter's packages, which every step may read; removed at the end."""
    with tempfile.TemporaryDirectory(dir=sys.prefix, prefix="seen-by-steps-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
