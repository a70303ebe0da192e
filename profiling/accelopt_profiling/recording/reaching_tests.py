"""Find the tests and benchmarks of a repository that may reach a kernel file, by their text; nothing is imported."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from accelopt_profiling.problems.discovery.problem_files import top_level_names
from accelopt_profiling.source_text import UnreadableFileError, read_text, try_parse

#: Python files that are looked at, and the size from which one is passed over.
_MOST_FILES, _MOST_BYTES = 10_000, 1 << 20
_PASSED_OVER = {"node_modules", "site-packages", "build", "dist", "__pycache__"}
_TEST = re.compile(r"(^test_|_test\.py$|^bench|_bench(mark)?\.py$|^conftest\.py$)")


@dataclass(frozen=True)
class ReachingTest:
    """A file that may launch the kernels: ``why`` in words; the ``command`` that runs it."""

    path: str
    why: str
    command: list[str]
    rank: int = 0


def reaching_tests(
    kernel_file: Path, root: Path, cancelled: Callable[[], bool] = lambda: False
) -> list[ReachingTest]:
    """Return the tests and benchmarks below ``root`` that import the kernel file or name something of it, or of a
    module that does; those that come closest first. Empty when cancelled.
    """
    try:
        own = _public_names(read_text(kernel_file), kernel_file.stem)
    except UnreadableFileError:
        return []
    texts: dict[Path, str] = {}
    for path in _python_files(root):
        if cancelled():
            return []
        if path != kernel_file:
            texts[path] = _text(path)
    module = _import_of(kernel_file.stem, kernel_file.parent.name)
    users = [p for p, text in texts.items() if not _is_test(p) and module.search(text)]
    indirect = {n: p for p in users[:50] for n in _public_names(texts[p], p.stem)}
    tests: list[ReachingTest] = []
    for path, text in texts.items():
        if _is_test(path) and path.name != "conftest.py":
            test = _reaching(
                path, text, root=root, stem=kernel_file.stem, module=module, own=own, indirect=indirect
            )
            tests += [test] if test is not None else []
        if cancelled():
            return []
    return sorted(tests, key=lambda t: (t.rank, len(t.path), t.path))


def _reaching(
    path: Path, text: str, root: Path, stem: str, module: re.Pattern[str], own: set[str], indirect: dict[str, Path]
) -> ReachingTest | None:  # fmt: skip
    words = set(re.findall(r"\w+", text))
    own_names = sorted(own & words)
    through = sorted(set(indirect) & words)
    if module.search(text):
        rank, why = 0, f"imports {stem}"
    elif own_names:
        rank, why = 2, f"names {own_names[0]}"
    elif through:
        rank, why = 4, f"names {through[0]} of {indirect[through[0]].name}"
    else:
        return None
    rank -= stem in path.stem
    relative = path.relative_to(root).as_posix()
    tests = re.search(r"^\s*(async )?def test_|^class Test", text, re.MULTILINE)
    command = ["pytest", "-q", relative] if tests else ["python", relative]
    return ReachingTest(relative, why, command, rank)


def _public_names(text: str, stem: str) -> set[str]:
    """Return the functions and classes of a module, without words that anybody may use."""
    parsed = try_parse(text)
    defined = {n.name for n in parsed.tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    names = {n for n in top_level_names(parsed.tree) if n in defined}
    return {n for n in names if len(n) > 4 and not n.startswith("__")} - {"main", "forward", "backward"}


def _import_of(stem: str, folder: str) -> re.Pattern[str]:
    """Return what an import of the module ``folder.stem`` looks like."""
    name, package = re.escape(stem), re.escape(folder)
    return re.compile(
        rf"^\s*(from\s+[\w.]*\b{package}\.{name}\s+import|import\s+[\w.]*\b{package}\.{name}\b"
        rf"|from\s+[\w.]*\b{package}\s+import[^\n]*\b{name}\b|from\s+\.+{name}\s+import|from\s+\.\s+import[^\n]*\b{name}\b"
        rf"|from\s+{name}\s+import|import\s+{name}\b)",
        re.MULTILINE,
    )


def _is_test(path: Path) -> bool:
    return bool(_TEST.search(path.name))


def _python_files(root: Path) -> Iterator[Path]:
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            f for f in folders if not f.startswith(".") and f not in _PASSED_OVER and "venv" not in f
        )
        for name in sorted(names):
            if name.endswith(".py"):
                count += 1
                if count > _MOST_FILES:
                    return
                yield Path(folder, name)


def _text(path: Path) -> str:
    try:
        return read_text(path) if path.stat().st_size <= _MOST_BYTES else ""
    except (OSError, UnreadableFileError):
        return ""
