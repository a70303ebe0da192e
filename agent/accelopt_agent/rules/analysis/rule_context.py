"""The input of a rule: one kernel in its parsed file, with its measured cost."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.imported_names import ImportedNames
from accelopt_agent.rules.analysis.parsed_source import ParsedSource
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.source_text import syntax_of

T = TypeVar("T")


@dataclass(frozen=True)
class Rewrite:
    """One way in which a rule would change a kernel.

    ``launch_edits`` lie outside of it, at its launches.

    ``moves`` are the counters that should change and how, where that differs from the rule's entry in the catalogue.
    ``variant`` tells that only a number is another one than in a rewrite that the rule made before.
    """

    edits: tuple[ByteEdit, ...]
    summary: str
    launch_edits: tuple[ByteEdit, ...] = ()
    moves: Mapping[str, str] | None = None
    variant: bool = False


@dataclass(frozen=True, eq=False)
class RuleContext:
    """``function`` is the kernel's definition in ``source``. ``names`` resolves what is visible inside it."""

    source: ParsedSource
    kernel: Kernel
    function: cst.FunctionDef
    measurement: KernelMeasurement | None = None
    target: str = ""
    analyses: dict[Any, Any] = field(default_factory=dict)

    def analysis(self, kind: Callable[[RuleContext], T]) -> T:
        """Return ``kind(self)``, made once and shared by all rules."""
        if kind not in self.analyses:
            self.analyses[kind] = kind(self)
        result: T = self.analyses[kind]
        return result

    @cached_property
    def names(self) -> ImportedNames:
        names, tree = ImportedNames(), syntax_of(self.source.text)
        names.bind_all(tree.body)
        around = [n for n in self.source.parents(self.function) if isinstance(n, cst.FunctionDef)]
        lines = {self.source.line(function) for function in (*around, self.function)}
        for node in ast.walk(tree):  # from the outside in
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno in lines:
                names.bind_arguments(node.args)
                names.bind_all(node.body)
        return names

    @property
    def start(self) -> int:
        """The offset of the kernel's first line: that of its first decorator."""
        decorators = self.function.decorators
        return self.source.line_start(self.source.start(decorators[0] if decorators else self.function))

    @property
    def end(self) -> int:
        return self.source.line_end(self.source.end(self.function))


class KernelNotFoundError(LookupError):
    """The kernel is not in the text: the file changed."""


def open_context(
    source: ParsedSource, kernel: Kernel, measurement: KernelMeasurement | None = None, target: str = ""
) -> RuleContext:
    """Find ``kernel`` in ``source``.

    Raises:
        KernelNotFoundError: no function of that name stands at the kernel's line.
    """
    name = kernel.name.rpartition(".")[2].partition("#")[0]
    for function in source.walk(source.module, cst.FunctionDef):
        if function.name.value == name and source.line(function) == kernel.line:
            return RuleContext(source, kernel, function=function, measurement=measurement, target=target)
    raise KernelNotFoundError(f"no kernel {kernel.name} at line {kernel.line}")
