"""Define the exit codes, and map exceptions to an exit code and one clear message."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from accelopt_lsp.errors import file_fault


class Exit(IntEnum):
    """The exit codes that scripts rely on."""

    DONE = 0
    NO = 1  # the answer is no: rejected, wrong, slower, nothing found
    WRONG_INPUT = 2  # wrong usage or input
    UNAVAILABLE = 3  # the host, the model or the database failed
    MISTAKE = 70  # ours: nobody expected it (EX_SOFTWARE of sysexits)
    INTERRUPTED = 130  # Ctrl-C, as shells have it


class CommandError(Exception):
    """Ends a command with ``message`` on standard error, and with ``--json`` as its one object on standard
    output."""

    def __init__(self, exit_code: Exit, message: str) -> None:
        super().__init__(message)
        self.exit_code, self.message = exit_code, message


#: The exceptions of the rooms by the exit code that they mean. By name, so that a command that never used a room need
#: not import it to fail.
EXIT_CODES: dict[str, Exit] = {
    "MemoryUnavailableError": Exit.UNAVAILABLE,
    "HostUnreachableError": Exit.UNAVAILABLE,
    "HostUnavailableError": Exit.UNAVAILABLE,
    "MemoryUnusableError": Exit.UNAVAILABLE,
    "RefusedError": Exit.NO,
    "EditorError": Exit.UNAVAILABLE,
    "JobFailedError": Exit.WRONG_INPUT,
    "MemoryImportError": Exit.WRONG_INPUT,
    "ProblemError": Exit.WRONG_INPUT,
    "UserError": Exit.WRONG_INPUT,
}


def wrong_input(message: str) -> CommandError:
    return CommandError(Exit.WRONG_INPUT, message)


def expected_failure(error: BaseException) -> CommandError | None:
    """Return the failure that a room's own error means; None for what nobody expected."""
    if isinstance(error, CommandError):
        return error
    codes = [EXIT_CODES[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in EXIT_CODES]
    return CommandError(codes[0], str(error)) if codes else None


def failure_at_files(error: BaseException, arguments: Sequence[str]) -> CommandError | None:
    """Return the failure of a command at a file, or for want of memory; None for another error.

    An error that does not say at which file gets the files among the command's ``arguments``.
    """
    files = ", ".join(text for text in arguments if not text.startswith("-") and os.path.isfile(text))
    code = Exit.WRONG_INPUT if isinstance(error, (RecursionError, UnicodeError)) else Exit.UNAVAILABLE
    sentence = file_fault(error, files)
    return CommandError(code, sentence) if sentence else None


def as_object(failure: CommandError) -> dict[str, Any]:
    return {"error": {"exit": int(failure.exit_code), "message": failure.message}}
