"""Which files of the project a Python file imports, by syntax: what a job on another machine must bring
along.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from accelopt_profiling.parsing import parse_python

MAX_FILES = 200
MAX_BYTES = 4 << 20


def project_imports(texts: Mapping[Path, str], roots: list[Path], inside: Path) -> dict[Path, str]:
    """Files below ``inside`` that ``texts`` import, directly or through one another, without ``texts``
    themselves.

    ``roots`` are the folders on the import path, in order. At most MAX_FILES files of MAX_BYTES together are
    read; files that cannot be read or do not parse are left out (importing them will say so where the job
    runs).
    """
    found: dict[Path, str] = {}
    waiting = list(texts.items())
    size = 0
    while waiting and len(found) < MAX_FILES:
        path, text = waiting.pop()
        for name, level in imported_names(text):
            for target in _resolve(name, level, path, roots):
                if target in found or target in texts or not target.is_relative_to(inside):
                    continue
                try:
                    content = target.read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError):
                    continue
                size += len(content)
                if size > MAX_BYTES:
                    return found
                found[target] = content
                waiting.append((target, content))
    return found


def imported_names(text: str) -> list[tuple[str, int]]:
    """Dotted names that a file may import, with the level of a relative import (0 when absolute)."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    names: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(alias.name, 0) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names.append((base, node.level))
            names += [
                (f"{base}.{alias.name}".lstrip("."), node.level) for alias in node.names if alias.name != "*"
            ]
    return names


def _resolve(name: str, level: int, importer: Path, roots: list[Path]) -> list[Path]:
    """The module's file and the ``__init__.py`` of each package on the way, where they exist."""
    if level:
        base = importer.parent
        for _ in range(level - 1):
            base = base.parent
        starts = [base]
        own = [base / "__init__.py"] if (base / "__init__.py").is_file() else []
    else:
        starts, own = roots, []
    parts = [p for p in name.split(".") if p]
    for start in starts:
        files: list[Path] = []
        folder = start
        for index, part in enumerate(parts):
            package, module = folder / part / "__init__.py", folder / f"{part}.py"
            if package.is_file():
                files.append(package)
                folder = folder / part
            elif module.is_file():
                files.append(module)
                break
            elif (folder / part).is_dir() and index + 1 < len(parts):
                folder = folder / part
            else:
                break
        if files:
            return [*own, *files]
    return own
