"""The comments that silence a finding, as edits of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from accelopt_agent.suggestions.text_edit import TextEdit

_IGNORED = re.compile(r"#\s*accelopt:\s*ignore\s*=\s*[a-z-]+(?:\s*,\s*[a-z-]+)*")


def line_comment(lines: Sequence[str], line: int, code: str) -> TextEdit | None:
    """Return the edit that silences ``code`` on the 1-based ``line``; None where no comment can stand there."""
    if not 1 <= line <= len(lines):
        return None
    body = lines[line - 1]
    if present := _IGNORED.search(body):
        return TextEdit(line - 1, present.end(), line - 1, present.end(), f", {code}")
    if body.endswith("\\") or body.count('"""') % 2 or body.count("'''") % 2:
        return None
    return TextEdit(line - 1, len(body), line - 1, len(body), f"  # accelopt: ignore={code}")


def file_comment(lines: Sequence[str], code: str) -> TextEdit:
    """Return the edit that silences ``code`` in a file: a line at its top, behind what only the first lines may say."""
    at = next(
        (n for n, line in enumerate(lines[:2]) if not re.match(r"#!|#.*coding[:=]", line)), len(lines[:2])
    )
    return TextEdit(at, 0, at, 0, f"# accelopt: ignore-file={code}\n")
