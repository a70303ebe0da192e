"""Reports what a kernel does that the hardware or the dialect does not allow, on the kernel's own source line."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import NoReturn

from accelopt_profiling.measurement import Finding, Severity

#: The folder of the package ``nki``: frames of its files are not the user's.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_in_package: dict[str, bool] = {}


class KernelFaultError(Exception):
    """Ends the emulation: what happened, on which 1-based line, under a stable code of ``findings.json``."""

    def __init__(self, code: str, message: str, line: int) -> None:
        super().__init__(message)
        self.code, self.message, self.line = code, message, line


class ValuesNeededError(KernelFaultError):
    """A kernel's loop runs as often as a tensor says, in a run without values."""


class LoopsTooLongError(BaseException):
    """A launch issued more instructions than it may. A BaseException, so that kernels do not catch it as an error."""


def user_line() -> int:
    """Return the 1-based line of the innermost frame outside this package, or 0. Called from this package
    only."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        ours = _in_package.get(name)
        if ours is None:
            ours = _in_package[name] = os.path.abspath(name).startswith(_PACKAGE)
        if not ours:
            return frame.f_lineno
        frame = frame.f_back
    return 0


class Diagnostics:
    """The findings of one run. ``replayed_line`` is the source line of what is replayed, 0 while Python runs;
    ``first_fault`` the first violation that ended it, whatever kernel code made of the exception.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.replayed_line = 0
        self.first_fault: KernelFaultError | None = None
        self._reported: set[tuple[str, int]] = set()

    def line(self) -> int:
        """Return the line of the kernel's source that is being executed or replayed."""
        return self.replayed_line or user_line()

    def fault(self, code: str, message: str) -> NoReturn:
        """End the run with a violation on the kernel's current line.

        Raises:
            KernelFaultError: always.
        """
        fault = KernelFaultError(code, message, self.line())
        self.first_fault = self.first_fault or fault
        raise fault

    def report(self, code: str, message: str, severity: Severity = "error", line: int | None = None) -> None:
        """Add a finding, of the current line unless one is named, and go on. Each code is reported once per line."""
        line = self.line() if line is None else line
        if (code, line) not in self._reported:
            self._reported.add((code, line))
            self.findings.append(Finding(code, line, severity, message))
