"""``get_inputs`` and ``reference``, in the kernel file or beside it.

Optional names of such a file: ``tolerance`` (a number, or ``{"rtol": ..., "atol": ...}``), ``shapes`` (a list of
keyword arguments for ``get_inputs``; the key ``count`` of each says how often the case occurred, ``count`` of the file
how often the main one), ``entry`` (the function of the kernel file that takes the inputs, or its name), ``keywords``
(the names by which the last inputs are passed), ``grid`` (of an entry that is a Triton kernel), ``on_chip`` (inputs
that an NKI kernel takes as tiles in SBUF), ``backward = True`` (gradients are computed too, and compared with the
reference's). Without ``reference`` the kernels are measured and their results not checked; a rewrite is compared with
the original.
"""

from __future__ import annotations

import os
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch
from accelopt_profiling.problems.layout import SCALE, ProblemLayout
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef

if TYPE_CHECKING:
    from accelopt_profiling.problems.problem import Problem
    from accelopt_profiling.step_context import StepContext

NAMES = ("get_inputs", "reference")


def _find(search: ProblemSearch) -> ProblemLookup | ProblemFile | None:
    if search.names >= set(NAMES):
        return search.lookup("module", None, "in the kernel file")
    beside = search.path.with_name(f"{search.path.stem}_problem.py")
    if os.path.lexists(beside) and beside != search.path:
        return ProblemFile(beside, f"in {beside.name}")
    return None


def _load(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    from accelopt_profiling.problems.call import with_gradients
    from accelopt_profiling.problems.loading.python_problem import (
        answer_of,
        compare_with_original,
        entry_for,
        parse_entry,
        parse_names,
        problem_module,
        python_problem,
    )
    from accelopt_profiling.problems.problem import Call, ProblemError

    module, file = problem_module(context, ref, kernel_module)
    entry = ref.entry or parse_entry(getattr(module, "entry", None), file)

    def call(inputs: list[Any]) -> tuple[Call, list[Any]]:
        if not keywords and not grid and not on_chip:
            return replace(stated, function=entry_for(context.source, entry, len(inputs), file)), inputs
        if entry is None:
            message = f"{file} states `keywords`, `grid` or `on_chip`; name the function in `entry` as well."
            raise ProblemError("problem-invalid", message, file)
        return stated, inputs

    def reference(inputs: list[Any]) -> list[Any] | None:
        if backward:
            return answer_of(problem, "reference", with_gradients(module.reference, inputs, {}))
        return answer_of(problem, "reference", module.reference(*inputs))

    problem = python_problem(module, file, ["get_inputs"], call)
    if not hasattr(module, "reference"):
        compare_with_original(problem, context, kernel_module)
    elif not callable(module.reference):
        message = (
            f"{file} has no function `reference`: the name is bound to something else; make it a function."
        )
        raise ProblemError("problem-invalid", message, file)
    else:
        problem.reference = reference
    keywords = parse_names(getattr(module, "keywords", []), "keywords", file)
    on_chip = parse_names(getattr(module, "on_chip", []), "on_chip", file)
    backward = getattr(module, "backward", False) is True  # in a kernel file it may be a function
    axes = getattr(module, "grid", [])
    grid = parse_names([axes] if isinstance(axes, str) else axes, "grid", file)
    stated = Call(
        entry or "", "launch" if grid else "returns", keywords=keywords, grid=grid, on_chip=on_chip,
        backward=backward,
    )  # fmt: skip
    return problem


_ABOUT = """\
In the kernel file, or in `<name>_problem.py` beside it. `reference` may be left out. The optional names are in [Write
a problem](../how-to/problems.md#2-get_inputs-and-reference)."""

_PROBLEM = """import torch


def get_inputs(n=1000):
    return [torch.randn(n, device="cuda")]


def reference(x):
    return 2 * x
"""

LAYOUT = ProblemLayout(
    "module", "`get_inputs` and `reference`", _load, _find,
    about=_ABOUT, example={"k.py": SCALE, "k_problem.py": _PROBLEM},
    names=NAMES, least=("get_inputs",), answers=("reference", "get_inputs"),
)  # fmt: skip
#: What a profile infers and then loads as if it had been written beside the kernel file.
INFERRED = ProblemLayout("inferred", "inferred arguments", _load, inferred=True)
