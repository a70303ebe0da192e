"""Read the name of a kernel file's problem: from a comment, or the settings."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from accelopt_profiling.source_text import resolve_links, source_lines

_COMMENT = re.compile(r"#\s*accelopt:\s*(?P<settings>.*)$")
_SETTING = re.compile(r"(?P<key>\w+)\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>\S+))")


@dataclass(frozen=True)
class NamedProblem:
    """A problem file that a comment or the settings name, as ``spelling`` writes it; ``path`` is absolute.

    ``line`` (1-based) is the line of the comment in the kernel file, None for the settings.
    """

    path: Path
    entry: str | None
    line: int | None
    spelling: str


def named_in_comment(path: Path, text: str) -> NamedProblem | None:
    """Read the first comment ``# accelopt: problem=FILE [entry=NAME]``; FILE is relative to the file's folder."""
    if "accelopt:" not in text:
        return None
    for line, comment in _comments(text):
        matched = _COMMENT.match(comment)
        if not matched:
            continue
        settings = {m["key"]: m["quoted"] or m["bare"] or "" for m in _SETTING.finditer(matched["settings"])}
        if settings.get("problem"):
            spelling = settings["problem"]
            return NamedProblem(resolve_links(path.parent / spelling), settings.get("entry"), line, spelling)
    return None


def named_in_settings(
    path: Path, configured: Mapping[str, str] | str | None, project_root: Path | None
) -> NamedProblem | None:
    """Return the problem that the settings give this file.

    ``configured`` is one path for every file, or maps file patterns (relative to the project's root, ``*``
    also crosses folders) to paths; a full match of the path comes before patterns.
    """
    if not configured:
        return None
    base = project_root or path.parent
    if isinstance(configured, str):
        return NamedProblem(resolve_links(base / configured), None, None, configured)
    relative = path.relative_to(base).as_posix() if path.is_relative_to(base) else path.name
    for pattern in sorted(configured, key=lambda p: (p != relative, list(configured).index(p))):
        if relative == pattern or fnmatch(relative, pattern) or fnmatch(path.name, pattern):
            spelling = configured[pattern]
            return NamedProblem(resolve_links(base / spelling), None, None, spelling)
    return None


def _comments(text: str) -> list[tuple[int, str]]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return [(n, line[line.index("#") :]) for n, line in enumerate(source_lines(text), 1) if "#" in line]
    return [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]
