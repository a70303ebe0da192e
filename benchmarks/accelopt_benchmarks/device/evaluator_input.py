"""Reads a kernel file and its problem for other evaluators: texts, inputs, and the function that is called."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class EvaluatorInput:
    """``entry`` is the function of ``kernel`` (a text) that takes the inputs of ``problem`` (a text with ``get_inputs``
    and ``reference``); ``given`` and ``expected`` are one draw and its answer.
    """

    kernel: str
    problem: str
    entry: str
    given: list[Any] = field(default_factory=list)
    expected: Any = None


def evaluator_input(kernel: Path, problem: Path) -> EvaluatorInput:
    """Build an evaluator's input. Raises ValueError: no plain function of the kernel file takes as many arguments as
    there are inputs."""
    text, told = kernel.read_text(encoding="utf-8"), problem.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": problem.stem}
    exec(compile(told, str(problem), "exec"), names)  # noqa: S102  (a problem of the corpus)
    given = list(names["get_inputs"]())
    return EvaluatorInput(text, told, entry_of(text, len(given)), given, names["reference"](*given))


def entry_of(text: str, inputs: int) -> str:
    """Return the last function of a kernel file's text that no decorator makes a kernel and that takes so
    many arguments.

    Raises:
        ValueError: there is none.
    """
    functions = [
        node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and not node.decorator_list
    ]
    fitting = [function.name for function in functions if len(function.args.args) == inputs]
    if not fitting:
        raise ValueError(f"no function of the kernel file takes {inputs} inputs")
    return fitting[-1]
