"""Cases of the NKI rules, one file per rule in ``nki_rules/``, and the kernels that they are about.

A case is ``=== name``, the kernel's body, and ``--- becomes`` with the body that one of the rule's rewrites makes, or
``--- stays`` where the rule must not apply. ``*** with`` begins lines that stand before the bodies of all cases that
follow. A case whose name starts with "current: " is in today's dialect, and takes part in none of these lines.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accelopt_profiling.nki.install import emulated

HEADER = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

WIDTH = 256


@nki.jit
def kernel(x, w):
    # x is (256, 1024), w is (128, 1024)
    out = nl.ndarray((256, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
"""
CURRENT_HEADER = HEADER.replace("neuronxcc.nki", "nki")
FOOTER = """    return out  # all of it


def untouched( a,b ):  # layout that no formatter made
    return a+b
"""


WITH = "*** with\n"


@dataclass(frozen=True)
class Case:
    """``before`` and ``after`` are the kernel's body; ``after`` is None where the rule must not apply."""

    rule: str
    name: str
    before: str
    after: str | None
    current: bool = False

    def __str__(self) -> str:
        return f"{self.rule}: {self.name}"

    @property
    def header(self) -> str:
        return CURRENT_HEADER if self.current else HEADER

    def whole(self, body: str) -> str:
        """The file with this kernel body; a first line with "!" goes before the statement of the header."""
        header = self.header
        if body.lstrip().startswith("!"):
            first, _, body = body.partition("\n")
            header = header.replace("    out =", f"{first.replace('!', '')}\n    out =")
        return header + body + FOOTER


def _cases(file: Path) -> Iterator[Case]:
    """Raises ValueError where a case has neither of the two endings."""
    first, *parts = f"\n{file.read_text(encoding='utf-8')}".split("\n=== ")
    shared = _shared(f"{first}\n")
    for part in parts:
        name, _, rest = part.partition("\n")
        body, _, _ = f"{rest}\n".partition(WITH)
        before, becomes, after = body.partition("--- becomes\n")
        before, stays, _ = before.partition("--- stays\n")
        if not becomes and not stays:
            raise ValueError(f"{file.name}: {name!r} says neither what it becomes nor that it stays.")
        current = name.startswith("current: ")
        lines = "" if current else shared
        yield Case(f"nki-{file.stem}", name, lines + before, lines + after if becomes else None, current)
        shared = _shared(f"{rest}\n") or shared


def _shared(text: str) -> str:
    """The lines after a mark that stand before the bodies of the cases that follow."""
    _, mark, lines = text.partition(WITH)
    return lines if mark else ""


CASES = [
    case
    for file in sorted((Path(__file__).parents[1] / "agent/rules/nki_cases").glob("*.txt"))
    for case in _cases(file)
]
REWRITTEN = [case for case in CASES if case.after is not None]


def inputs() -> tuple[Any, Any]:
    random = np.random.default_rng(7)
    x, w = (random.standard_normal((n, 1024), dtype=np.float32) for n in (256, 128))
    return x, w


def run(text: str, *arguments: Any) -> Any:
    """What the kernel of the file ``text`` returns, on the emulator."""
    with emulated():
        return launched(text, *[np.array(a) for a in arguments])


def launched(text: str, *arguments: Any) -> Any:
    """What ``launch`` of the file ``text`` returns or, where it has none, its kernel; an emulation has to be in
    place."""
    module = loaded(text)
    return getattr(module, "launch", module.kernel)(*arguments)


def loaded(text: str) -> types.ModuleType:
    """The file ``text`` as a module; an emulation has to be in place."""
    module = types.ModuleType("case")
    exec(compile(text, "case", "exec"), module.__dict__)  # noqa: S102
    return module
