"""Starts the programs of this folder in processes of their own, gives them a kernel file and its problem, and reads
the line that each answers with.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import accelopt_benchmarks
import accelopt_lsp
import accelopt_profiling

#: How the answers of evaluators and of ``run_once`` begin.
JUDGED, FACTS = "JUDGED", "FACTS"


def program(module: str, *arguments: object) -> list[str]:
    """Return the command that runs a module of this folder with this interpreter."""
    return [sys.executable, "-m", f"accelopt_benchmarks.device.{module}", *map(str, arguments)]


def environment() -> dict[str, str]:
    """Such a child finds this package and its neighbours however they were found here."""
    packages = (accelopt_benchmarks, accelopt_lsp, accelopt_profiling)
    places = [str(Path(package.__file__ or "").parents[1]) for package in packages]
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*places, *([before] if before else [])])}


def answer(word: str, told: Mapping[str, Any]) -> None:
    """Write a program's answer on a line that begins with ``word``. Others may write around it."""
    sys.stdout.write(f"\n{word} {json.dumps(told)}\n")
    sys.stdout.flush()


def tell_judgement(accepted: bool, us: float | None, said: str) -> None:
    """Tell, in an evaluator's program, whether it accepts the kernel file, its time in microseconds, and its
    words."""
    answer(JUDGED, {"accepted": accepted, "us": us, "said": said[-300:]})


def answer_of(
    word: str,
    command: Sequence[str],
    seconds: float,
    folder: str | None = None,
    more: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run a program, in ``folder`` and with ``more`` in its environment, and read its ``answer``.

    Raises:
        ValueError: it did not answer; with its last words.
        subprocess.TimeoutExpired: not within ``seconds``; it was ended.
    """
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, cwd=folder,
        env={**environment(), **(more or {})}, check=False,
    )  # fmt: skip
    for line in done.stdout.splitlines():
        if line.startswith(f"{word} "):
            told: dict[str, Any] = json.loads(line.removeprefix(f"{word} "))
            return told
    raise ValueError((done.stderr.strip().splitlines() or ["it said nothing"])[-1][:200])


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
