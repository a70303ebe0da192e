"""A kernel that breaks a rule of the hardware or of the dialect, with the line that does it."""

from __future__ import annotations


class KernelFault(Exception):
    """Ends the emulation: what happened, on which 1-based line, under a stable code of ``findings.json``."""

    def __init__(self, code: str, message: str, line: int) -> None:
        super().__init__(message)
        self.code, self.message, self.line = code, message, line
