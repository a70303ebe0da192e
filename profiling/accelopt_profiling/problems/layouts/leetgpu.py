"""LeetGPU's layout: ``solve`` of a kernel file, and ``challenge.py`` beside it or above, which has the reference.

``solve`` returns nothing: what ``Challenge.reference_impl`` changes of the same arguments are the outputs. The
tolerance is that of the dtypes; the challenge's own, up to 1e-2, is not taken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch, readable
from accelopt_profiling.problems.layout import SCALE, ProblemLayout
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef

if TYPE_CHECKING:
    from accelopt_profiling.problems.problem import Problem
    from accelopt_profiling.step_context import StepContext

ENTRY = "solve"
#: A solution may lie so many folders below its challenge (``starter/``, ``solution/``).
_LEVELS = 2
#: What challenges inherit from, of whatever version, where their ``core/challenge_base.py`` is not at hand.
_BASE = """class ChallengeBase:
    def __init__(self, device="cuda", **stated):
        self.device = device
        vars(self).update(stated)
"""


def _find(search: ProblemSearch) -> ProblemLookup | None:
    for file in readable(_challenges(search) if ENTRY in search.names else []):
        if lookup := _read(search, file):
            return lookup
    return None


def _challenges(search: ProblemSearch) -> Iterator[ProblemFile]:
    for folder in search.path.parents[: _LEVELS + 1]:
        file = folder / "challenge.py"
        if search.project_root and not file.is_relative_to(search.project_root):
            break
        yield ProblemFile(file, f"LeetGPU challenge {folder.name}")


def _read(search: ProblemSearch, file: ProblemFile) -> ProblemLookup | None:
    if file.source is None or not _is_challenge(file.source.tree):
        return None
    base = Path("core/challenge_base.py")
    beside = search.path.parent / base  # where an import of the challenge finds it
    package = {beside: _base_text(file.path, base), beside.with_name("__init__.py"): ""}
    also = {} if beside.parent.exists() else package
    return search.lookup(
        "leetgpu", file.path, file.origin, file.text, entry=file.entry, also=also, imports=file.source.imports
    )


def _is_challenge(tree: ast.Module) -> bool:
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Challenge"]
    return any(isinstance(n, ast.FunctionDef) and n.name == "reference_impl" for c in classes for n in c.body)


def _base_text(challenge: Path, base: Path) -> str:
    above = readable(ProblemFile(folder / base, "") for folder in challenge.parents[:4])
    return next((file.text for file in above), _BASE)


def _load(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    import torch

    from accelopt_profiling.comparison.memory import byte_count
    from accelopt_profiling.problems.call import seed_everything
    from accelopt_profiling.problems.problem import Call, Problem, ProblemError
    from accelopt_profiling.worker.usercode import load_module, user_errors

    file = str(ref.path)
    with user_errors(context):
        challenge = load_module(context, file).Challenge()
        names = list(challenge.get_solve_signature())

    def tensor(value: Any) -> Any:
        """Return the tensor that a test describes (``RandnTensor``, ``OutTensor``, ...), anything else as it is."""
        if isinstance(value, torch.Tensor) or not hasattr(value, "shape"):
            return value
        stated, dtype = vars(value), getattr(torch, value.dtype)
        blank = torch.empty(value.shape, dtype=dtype, device=challenge.device)
        if "std" in stated:
            return blank.normal_(value.mean, value.std)
        if "low" in stated:
            draw = blank.uniform_ if dtype.is_floating_point else blank.random_
            return draw(value.low, value.high)
        return blank.fill_(stated.get("value", 0))

    def cases() -> list[list[Any]]:
        tests = [challenge.generate_performance_test(), *challenge.generate_functional_test()]
        return [[tensor(test[name]) for name in names] for test in tests]

    def inputs(seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        most = int(shape["bytes"]) if shape else sizes[0]
        seed_everything(seed)
        fitting = [n for n, size in enumerate(sizes) if size <= most]
        return cases()[max(fitting or [sizes.index(min(sizes))], key=lambda n: sizes[n])]

    def reference(inputs: list[Any]) -> list[Any] | None:
        challenge.reference_impl(*inputs)
        raise ProblemError("problem-empty", "`reference_impl` changed none of its arguments.", file)

    with user_errors(context):
        sizes = [byte_count(case) for case in cases()]
    call = Call(ref.entry or ENTRY)
    problem = Problem(inputs, lambda inputs: (call, inputs), reference, file=file)
    problem.axes = {"bytes": sizes[0]}  # where a check does not fit, it is made on a smaller test
    problem.headline = "the performance test"
    problem.shapes = [{"bytes": size} for size in sorted({size for size in sizes if size < sizes[0]})]
    return problem


_ABOUT = """\
`solve` in the kernel file, and `challenge.py` with a class `Challenge` in its folder or at most two above it.
`solve` gets the arguments of `get_solve_signature` by position and changes its outputs in place, as
`reference_impl` does. The performance test is the main case; functional tests are further ones, and a check that
does not fit is made on a smaller test. `core/challenge_base.py` is taken from above the challenge; without it a
class that keeps what it is given stands in. Only challenges for one GPU can be run."""

_CHALLENGE = """import ctypes

import torch
from core.challenge_base import ChallengeBase


class Challenge(ChallengeBase):
    def __init__(self):
        super().__init__(name="Scale", atol=1e-5, rtol=1e-5, num_gpus=1)

    def reference_impl(self, x, out, n):
        out.copy_(2 * x)

    def get_solve_signature(self):
        pointer = ctypes.POINTER(ctypes.c_float)
        return {"x": (pointer, "in"), "out": (pointer, "out"), "n": (ctypes.c_int, "in")}

    def test(self, n):
        return {"x": torch.randn(n, device="cuda"), "out": torch.zeros(n, device="cuda"), "n": n}

    def generate_functional_test(self):
        return [self.test(n) for n in (1, 100)]

    def generate_performance_test(self):
        return self.test(5000)
"""
_ENTRY = """

def solve(x, out, n):
    scale_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
"""

LAYOUT = ProblemLayout(
    "leetgpu", "LeetGPU", load=_load, find=_find, read=_read,
    about=_ABOUT, example={"k.py": SCALE + _ENTRY, "challenge.py": _CHALLENGE},
)  # fmt: skip
