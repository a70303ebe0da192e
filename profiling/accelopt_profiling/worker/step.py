"""What a step sees inside its child process, and how it fails."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import Source, StepError

_NO_ROOM = {errno.EFBIG, errno.ENOSPC, errno.EDQUOT}


class StepFailed(Exception):
    """Ends a step with an answer the user can act on."""

    def __init__(self, error: StepError) -> None:
        super().__init__(error.message)
        self.error = error


def host_error(what: str, error: OSError, detail: str = "") -> StepError:
    """``what`` (a clause) was kept from happening by the host: "disk-full" or "internal"."""
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
