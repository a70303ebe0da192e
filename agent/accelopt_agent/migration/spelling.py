"""Names of NKI's modules, functions and arguments in both dialects, and the error for what has no counterpart."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

TABLE: dict[str, Any] = json.loads(files(__package__).joinpath("spellings.json").read_text("utf-8"))


class UntranslatableError(Exception):
    """A statement that cannot be moved by itself, and why."""


@dataclass(frozen=True)
class ModuleNames:
    """The names under which a file knows NKI's modules: ``nl``, ``nisa``; and single functions by dotted name."""

    names: dict[str, str]

    def dotted(self, node: ast.expr) -> str:
        """Return ``neuronxcc.nki.language.load`` for ``nl.load``, "" for what is not below NKI."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "")
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def below(self, node: ast.expr, module: str) -> str:
        dotted = self.dotted(node)
        prefix = f"neuronxcc.nki.{module}."
        return dotted.removeprefix(prefix) if dotted.startswith(prefix) else ""

    def module(self, dotted: str, usual: str) -> str:
        """Return the name of a module in the file, ``usual`` where it has none."""
        return next((name for name, module in self.names.items() if module == dotted), usual)


def named_arguments(call: ast.Call, parameters: Sequence[str]) -> dict[str, ast.expr]:
    """Return a call's arguments by name, those by position named after ``parameters``.

    Raises:
        UntranslatableError: there are more by position.
    """
    named = dict(zip(parameters, call.args, strict=False))
    if len(call.args) > len(parameters):
        raise UntranslatableError("more arguments by position than the instruction has")
    return named | {k.arg: k.value for k in call.keywords if k.arg}
