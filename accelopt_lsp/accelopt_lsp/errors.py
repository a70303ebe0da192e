"""Errors that are shown to a person as they are: what happened, to what, what to do next."""

from __future__ import annotations


class UserError(Exception):
    """Something expected went wrong, such as wrong input or a setting that cannot be used."""


class HostUnavailableError(UserError):
    """The host cannot be reached. Work that needs no host goes on."""


class RefusedError(UserError):
    """The answer is no; the message says why, and ``code`` for programs."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class MemoryUnusableError(UserError):
    """The memory's database cannot be used. Work that stores nothing goes on."""


def file_fault(error: BaseException, files: str = "") -> str:
    """Return what failed at a file, or for want of memory, in a sentence; "" for another error. ``files`` are named
    where the error says none."""
    place = f"{files}: " if files else ""
    if isinstance(error, OSError) and not isinstance(error, (ConnectionError, TimeoutError)):
        what = error.strerror or str(error)
        what = f"{what}: {error.filename}" if error.filename else f"{place}{what}"
        return f"{what}. Make it usable for this user, with room on its disk, and try again."
    if isinstance(error, MemoryError):
        return f"{place}The memory ran out; close what else runs, and try again."
    if isinstance(error, RecursionError):
        return f"{place}The text is nested more deeply than can be read; make it flatter."
    if isinstance(error, UnicodeError):
        return f"{place}Some of it is no text ({error}); save it as UTF-8."
    return ""
