"""Counts the calls of ``nki.isa`` functions in a library, and those that the emulator supports.

``python -m accelopt_benchmarks.nki.call_sites DIR`` counts call sites in a checkout by syntax; nothing is imported.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_profiling.nki.current import isa

_MODULE = "nki.isa"


@dataclass
class Calls:
    """Call sites by function name; ``unread`` are files that do not parse."""

    functions: Counter[str] = field(default_factory=Counter)
    files: int = 0
    unread: list[Path] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.functions.total() if hasattr(self.functions, "total") else sum(self.functions.values())

    def covered(self) -> int:
        """Call sites of functions that are emulated."""
        known = isa.names()
        return sum(count for name, count in self.functions.items() if name in known)

    def missing(self) -> list[tuple[str, int]]:
        """Return what is called and not emulated, most frequent first."""
        known = isa.names()
        return [(name, count) for name, count in self.functions.most_common() if name not in known]


def count(folder: Path) -> Calls:
    """Count the call sites in every Python file below ``folder``."""
    found = Calls()
    for path in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            found.unread.append(path)
            continue
        found.files += 1
        found.functions.update(_called(tree))
    return found


def _called(tree: ast.Module) -> list[str]:
    modules, functions = _imported(tree)
    names = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        target = node.func
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id in modules
        ):
            names.append(target.attr)
        elif isinstance(target, ast.Name) and target.id in functions:
            names.append(functions[target.id])
    return names


def _imported(tree: ast.Module) -> tuple[set[str], dict[str, str]]:
    """Return the local names of the module, and of its functions."""
    modules: set[str] = set()
    functions: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(a.asname for a in node.names if a.name == _MODULE and a.asname)
        elif isinstance(node, ast.ImportFrom) and node.module == "nki":
            modules.update(a.asname or a.name for a in node.names if a.name == "isa")
        elif isinstance(node, ast.ImportFrom) and node.module == _MODULE:
            functions.update({a.asname or a.name: a.name for a in node.names})
    return modules, functions


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write(__doc__ or "")
        return 2
    found = count(Path(arguments[0]))
    share = found.covered() / found.total if found.total else 0.0
    missing = ", ".join(f"{name} {number}" for name, number in found.missing())
    sys.stdout.write(
        f"{found.covered()} of {found.total} call sites in {found.files} files are emulated: {share:.1%}\n"
        f"not emulated: {missing or 'none'}\nnot read: {', '.join(map(str, found.unread)) or 'none'}\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
