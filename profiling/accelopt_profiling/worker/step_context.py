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

    The source files lie below ``folder / "src"``. ``emit`` takes plain data or dataclasses and sends them at once.
    """

    folder: Path
    source: Source
    emit: Callable[[Any], None]

    @property
    def kernel_path(self) -> Path:
        return self.folder / "src" / self.source.kernel
