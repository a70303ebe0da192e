"""Defines the exit codes, and maps exceptions to an exit code and one clear message."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    """The exit codes that scripts rely on."""

    DONE = 0
    NO = 1  # the answer is no: rejected, wrong, slower, nothing found
    WRONG_INPUT = 2  # wrong usage or input
    UNAVAILABLE = 3  # the host, the model or the database failed
    MISTAKE = 70  # ours: nobody expected it (EX_SOFTWARE of sysexits)
    INTERRUPTED = 130  # Ctrl-C, as shells have it


class CommandFailed(Exception):
    """Ends a command with ``message`` on standard error, and with ``--json`` as its one object on standard
    output."""

    def __init__(self, exit_code: Exit, message: str) -> None:
        super().__init__(message)
        self.exit_code, self.message = exit_code, message


def wrong_input(message: str) -> CommandFailed:
    return CommandFailed(Exit.WRONG_INPUT, message)


def expected_failure(error: BaseException) -> CommandFailed | None:
    """The failure that a room's own error means; None for what nobody expected.

    Classes are told by name, so that a command that never used a room need not import it to fail.
    """
    if isinstance(error, CommandFailed):
        return error
    names = {cls.__name__ for cls in type(error).__mro__}
    if names & {"MemoryUnavailableError", "HostUnreachableError", "EditorFailed", "HostUnavailableError"}:
        return CommandFailed(Exit.UNAVAILABLE, str(error))
    if names & {"JobFailedError", "MemoryImportError", "ProblemError", "UserError"}:
        return CommandFailed(Exit.WRONG_INPUT, str(error))
    return None


def as_object(failure: CommandFailed) -> dict[str, Any]:
    return {"error": {"exit": int(failure.exit_code), "message": failure.message}}
