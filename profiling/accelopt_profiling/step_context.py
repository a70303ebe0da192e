"""The context that a step gets inside its child process, and the error that it fails with."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import JobFiles, StepError
from accelopt_profiling.source_text import encode_source

#: What a host refuses, by the error's number: the code, and what to do about it.
_NO_ROOM = "disk-full", "Make room there, and try again."
_NO_ACCESS = "no-access", "Let the user that runs AccelOpt there use it, and try again."
_REFUSED = {
    errno.EFBIG: _NO_ROOM, errno.ENOSPC: _NO_ROOM, errno.EDQUOT: _NO_ROOM,
    errno.EACCES: _NO_ACCESS, errno.EPERM: _NO_ACCESS, errno.EROFS: _NO_ACCESS,
}  # fmt: skip
_FAILED = "host-failed", "Try again; `accelopt doctor` shows what the host has."


class StepFailedError(Exception):
    """Ends a step with a ``StepError`` that tells the user what to do."""

    def __init__(self, error: StepError) -> None:
        super().__init__(error.message)
        self.error = error


def host_error(what: str, error: OSError, detail: str = "") -> StepError:
    """Return the error of a step that the host kept from ``what`` (a clause): one of ``measurement.HOST_FAULTS``."""
    code, advice = _REFUSED.get(error.errno or 0, _FAILED)
    return StepError(code, f"{what}: {error}. {advice}", detail=detail)


def step_error(step: str, error: BaseException, detail: str) -> StepError:
    """Return the error of a step that ended with an exception outside of the user's own code."""
    if isinstance(error, StepFailedError):
        return error.error
    if isinstance(error, MemoryError):
        return StepError("memory", "The run asked for more memory than its limit.")
    if isinstance(error, OSError):
        return host_error(f"The step {step} failed on the host", error, detail)
    if isinstance(error, RecursionError):
        why = "The file, or a value of its problem, is nested more deeply than can be read; make it flatter."
        return StepError("unsupported", f"{why} (RecursionError in the step {step})", detail=detail)
    if isinstance(error, UnicodeError):
        why = "The file, or a value of its problem, holds characters that are no text"
        return StepError("unsupported", f"{why} ({error}); write them as escapes.", detail=detail)
    why = f"AccelOpt failed in the step {step}, and not because of the file's own code"
    what = f"{type(error).__name__}: {error}"
    return StepError("tool-failed", f"{why} ({what}). Please report it with the file.", detail=detail)


@dataclass(frozen=True)
class StepContext:
    """The job's folder on this host, its source, and the way to send a partial result.

    The source files lie below ``folder / "src"``, where nothing can be written; what a step writes as if it were one of
    them lies below ``folder / "generated"``. ``emit`` takes plain data or dataclasses and sends them at once.
    """

    folder: Path
    source: JobFiles
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
        path.write_bytes(encode_source(text))

    def relative_source(self, file: str) -> str | None:
        """Return the relative path of one of the job's source files, None for any other file."""
        path = Path(file).resolve() if file else None
        for root in (self.folder / "src", self.folder / "generated"):
            if path is not None and path.is_relative_to(root.resolve()):
                return str(path.relative_to(root.resolve()))
        return None
