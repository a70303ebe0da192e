"""The context that a step gets inside its child process, and the error that it fails with."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import Source, StepError

_NO_ROOM = {errno.EFBIG, errno.ENOSPC, errno.EDQUOT}


class StepFailedError(Exception):
    """Ends a step with a ``StepError`` that tells the user what to do."""

    def __init__(self, error: StepError) -> None:
        super().__init__(error.message)
        self.error = error


def host_error(what: str, error: OSError, detail: str = "") -> StepError:
    """Return the error of a step that the host kept from ``what`` (a clause): "disk-full" or "internal"."""
    code = "disk-full" if error.errno in _NO_ROOM else "internal"
    return StepError(code, f"{what}: {error}", detail=detail)


@dataclass(frozen=True)
class StepContext:
    """The job's folder on this host, its source, and the way to send a partial result.

    The source files lie below ``folder / "src"``, where nothing can be written; what a step writes as if it were one of
    them lies below ``folder / "generated"``. ``emit`` takes plain data or dataclasses and sends them at once.
    """

    folder: Path
    source: Source
    emit: Callable[[Any], None]

    @property
    def kernel_path(self) -> Path:
        return self.source_path(self.source.kernel)

    def source_path(self, relative: str) -> Path:
        """Return where the source file of that relative path lies."""
        generated = self.folder / "generated" / relative
        return generated if generated.is_file() else self.folder / "src" / relative

    def write_generated(self, relative: str, text: str) -> None:
        """Write a source file that did not come with the job."""
        path = self.folder / "generated" / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def relative_source(self, file: str) -> str | None:
        """Return the relative path of one of the job's source files, None for any other file."""
        path = Path(file).resolve() if file else None
        for root in (self.folder / "src", self.folder / "generated"):
            if path is not None and path.is_relative_to(root.resolve()):
                return str(path.relative_to(root.resolve()))
        return None
