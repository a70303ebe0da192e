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
from pathlib import Path
from typing import Any

import accelopt_benchmarks
import accelopt_lsp
import accelopt_profiling

#: How the answer of ``run_once`` begins.
FACTS = "FACTS"


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


def answer_of(word: str, command: Sequence[str], seconds: float) -> dict[str, Any]:
    """Run a program and read its ``answer``.

    Raises:
        ValueError: it did not answer; with its last words.
        subprocess.TimeoutExpired: not within ``seconds``; it was ended.
    """
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, env=environment(), check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith(f"{word} "):
            told: dict[str, Any] = json.loads(line.removeprefix(f"{word} "))
            return told
    raise ValueError((done.stderr.strip().splitlines() or ["it said nothing"])[-1][:200])


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
