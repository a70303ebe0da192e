"""A layout of problems: how one is found, loaded and told apart from others, and what a reader has to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef

if TYPE_CHECKING:  # a server that looks for problems loads none
    from accelopt_profiling.problems.problem import Problem
    from accelopt_profiling.step_context import StepContext

#: The kernel file that examples of layouts share.
SCALE = """import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


def scale(x):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
"""


@dataclass(frozen=True)
class ProblemLayout:
    """One layout.

    Its functions import what they need of torch, NumPy and the worker when they are called.

    ``load`` returns the problem of a ``ProblemRef`` in a child process. ``find`` looks for a kernel file's problem and
    returns it, or the file to read; ``read`` returns the problem in a file that is named, None where the file is of
    another layout. ``names`` at the top of a Python file make it a problem by themselves, and ``least`` of them where
    no name tells of another layout; ``keys`` do so in a JSON object. ``about`` (Markdown) and ``example``, texts by
    file with the kernel file ``k.py`` among them, are the layout's part of ``docs/reference/problems.md``.

    ``referenced``: it has a reference besides the original kernel. ``runs_itself``: the kernel file's own run is the
    problem. ``inferred``: its arguments are inferred before it is loaded. ``replaces``: what is rewritten is the
    reference itself. ``launches``: the problem's files make the launches, so that a candidate needs them. ``torch``: it
    needs torch even where no file imports it. ``entry`` is the name that it gives the kernel file's function, and
    ``answers`` are names that give the answer or the inputs away.
    """

    kind: str
    title: str
    load: Callable[[StepContext, ProblemRef, ModuleType | None], Problem]
    find: Callable[[ProblemSearch], ProblemLookup | ProblemFile | None] | None = None
    read: Callable[[ProblemSearch, ProblemFile], ProblemLookup | None] | None = None
    about: str = ""
    example: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    least: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    referenced: bool = True
    runs_itself: bool = False
    inferred: bool = False
    replaces: bool = False
    launches: bool = False
    torch: bool = False
    entry: str = ""
    answers: tuple[str, ...] = ()
