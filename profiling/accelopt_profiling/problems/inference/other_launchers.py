"""Find the functions of other files of a package that launch the kernels of a file that launches none itself.

Only files that name a kernel are read further, the nearest ones first, and only modules that hold the very kernel of
the file count: a name alone may be another kernel's.
"""

from __future__ import annotations

import ast
import importlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.inference.entries import EntryCandidate, entry_candidates
from accelopt_profiling.problems.inference.usage import FunctionUse, function_uses
from accelopt_profiling.source_text import UnreadableFileError, read_text

#: Files that are looked through, seconds for it, and files of launchers that are imported.
_MOST_FILES, _SECONDS, _MOST_LAUNCHING = 4000, 2.0, 4


@dataclass(frozen=True)
class OtherLaunchers:
    """The entries of one file, which name its module, the file's text, and what its functions do with their
    parameters."""

    entries: list[EntryCandidate]
    text: str
    functions: dict[str, FunctionUse]


def other_launchers(
    module: ModuleType, file: Path, kernels: Mapping[str, ast.stmt]
) -> Iterator[OtherLaunchers]:
    """Yield the files that launch ``kernels``, functions and classes with kernels, of the kernel file ``file``, which
    ``module`` was made of. Their modules are imported; one that cannot be is left out."""
    depth = module.__name__.count(".")
    root, folder = file.parents[depth], file.parent if depth == 0 else file.parents[depth - 1]
    count = 0
    for path in _naming(folder, file, set(kernels)):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        try:
            tree = ast.parse(text := read_text(path))
            importing = _imported(tree) & set(kernels) or {n.attr for n in _attributes(tree)} & set(kernels)
            other = (
                importlib.import_module(name) if importing and name.replace(".", "").isidentifier() else None
            )
        except (UnreadableFileError, SyntaxError, ValueError):
            continue
        except Exception:
            continue
        if other is None:
            continue
        references = _KernelNames({k: getattr(module, k, None) for k in kernels}, vars(other))
        tree = references.visit(tree)
        candidates = [e for e in entry_candidates(tree, sorted(references.seen)) if e.kind != "kernel"]
        if candidates:
            count += 1
            launched = {
                n: k for n, k in kernels.items() if n in references.seen and isinstance(k, ast.FunctionDef)
            }
            functions = function_uses(tree, references.seen, launched)
            yield OtherLaunchers([replace(e, name=f"{name}:{e.name}") for e in candidates], text, functions)
        if count == _MOST_LAUNCHING:
            return


def _naming(folder: Path, file: Path, names: set[str]) -> Iterator[Path]:
    """Yield the Python files below ``folder`` that name one of ``names``, those nearest to ``file`` first."""
    ends = time.monotonic() + _SECONDS
    near = [file.parent, *(p for p in file.parent.parents if p.is_relative_to(folder))]
    encoded = [name.encode() for name in names]
    starts: set[str] = set()
    read = 0
    for start in near:
        for at, folders, files in os.walk(start):
            folders[:] = sorted(f for f in folders if f.isidentifier() and os.path.join(at, f) not in starts)
            for name in sorted(files):
                if not name.endswith(".py") or name.endswith("_problem.py") or Path(at, name) == file:
                    continue
                read += 1
                if read > _MOST_FILES or time.monotonic() > ends:
                    return
                try:
                    content = Path(at, name).read_bytes()
                except OSError:
                    continue
                if any(n in content for n in encoded):
                    yield Path(at, name)
        starts.add(str(start))


def _imported(tree: ast.Module) -> set[str]:
    return {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}


def _attributes(tree: ast.Module) -> Iterator[ast.Attribute]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.Attribute))


class _KernelNames(ast.NodeTransformer):
    """Puts the kernel's own name in the place of what a module calls it: ``kernels.add``, an alias. ``seen`` are the
    kernels that it names."""

    def __init__(self, kernels: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        self._kernels, self._names = kernels, names
        self.seen: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._plain(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        plain = self._plain(node)
        return self.generic_visit(plain) if plain is node else plain  # type: ignore[return-value]

    def _plain(self, node: ast.Name | ast.Attribute) -> ast.expr:
        value = self._value(node)
        name = next(
            (k for k, kernel in self._kernels.items() if kernel is not None and kernel is value), None
        )
        if name is None:
            return node
        self.seen.add(name)
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        owner = self._value(node.value) if isinstance(node, ast.Attribute) else None
        return vars(owner).get(node.attr) if isinstance(owner, ModuleType) else None  # type: ignore[attr-defined]
