"""Names of NKI's modules, functions and arguments in both dialects.

What has no counterpart is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_profiling.name_paths import all_import_paths, dotted_path
from accelopt_profiling.nki.current.versions import changes
from accelopt_profiling.nki.operations.table import names, operations

_ROWS = operations()
#: Instructions that return their tile in Beta 1 and write a destination today, with what Beta 1 takes by position.
INSTRUCTIONS = {
    row.short: row.signatures["beta1"].positional
    for row in _ROWS.values()
    if row.name.startswith("nisa.")
    and row.signatures.keys() == row.computes.keys() == {"beta1", "current"}
    and "dst" in row.signatures["current"].names - row.signatures["beta1"].names
}
#: Functions of ``nl`` that ScalarE computes in both dialects.
UNARY = frozenset(row.short for row in _ROWS.values() if row.family == "unary" and row.opcode == "activation")
#: Functions of ``nl`` that become one instruction with two operands, and the operators that mean them.
BINARY = frozenset(("add", "subtract", "multiply", "maximum", "minimum"))
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Gt: "greater", ast.GtE: "greater_equal",
    ast.Lt: "less", ast.LtE: "less_equal",
}  # fmt: skip
LOOPS = frozenset(_ROWS[name].short for name in names("range"))
#: Beta 1's names of engines, and today's members of ``nisa.engine``.
ENGINES = {f"{name}_engine": name for name in ("tensor", "vector", "scalar", "gpsimd", "dma", "unknown")}


def removed(module: str) -> frozenset[str]:
    """Return the names that today's ``module`` ("nki.language") lost."""
    return frozenset(
        name.rpartition(".")[2]
        for name, entry in changes("names").items()
        if name.rpartition(".")[0] == module and "removed" in entry and "unless" not in entry
    )


def taken_today(instruction: str, parameter: str) -> bool:
    """Return whether today's instruction takes an argument of that name."""
    return parameter in _ROWS[f"nisa.{instruction}"].signatures["current"].names


class UntranslatableError(Exception):
    """A statement that cannot be moved by itself, and why."""


@dataclass(frozen=True)
class ModuleNames:
    """The names by which a file knows NKI's modules and functions."""

    names: dict[str, str]

    @classmethod
    def of(cls, tree: ast.Module) -> ModuleNames:
        paths = all_import_paths(tree).items()
        return cls({name: path for name, path in paths if path.partition(".")[0] == "neuronxcc"})

    def dotted(self, node: ast.expr) -> str:
        """Return ``neuronxcc.nki.language.load`` for ``nl.load``, "" for what is not below NKI."""
        return dotted_path(node, self.names.get) or ""

    def below(self, node: ast.expr, module: str) -> str:
        dotted = self.dotted(node)
        prefix = f"neuronxcc.nki.{module}."
        return dotted.removeprefix(prefix) if dotted.startswith(prefix) else ""

    def module(self, dotted: str, usual: str) -> str:
        """Return a module's name in the file, ``usual`` where it has none."""
        return next((name for name, module in self.names.items() if module == dotted), usual)


def named_arguments(call: ast.Call, parameters: Sequence[str]) -> dict[str, ast.expr]:
    """Return a call's arguments by name, those by position named after ``parameters``.

    Raises:
        UntranslatableError: there are more by position.
    """
    arguments = dict(zip(parameters, call.args, strict=False))
    if len(call.args) > len(parameters):
        raise UntranslatableError("more arguments by position than the instruction has")
    return arguments | {k.arg: k.value for k in call.keywords if k.arg}
