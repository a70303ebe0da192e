"""KernelBench's layout: ``Model``, ``get_inputs``, ``get_init_inputs``, for a kernel's ``ModelNew``.

``Model`` and ``ModelNew`` take the same arguments. As KernelBench does it, both are built after seeding the generators
alike, so that they draw the same weights when they make their parameters in the same order, and both stay in
training mode. What KernelBench compares loosely (1e-4 or 1e-2, one distribution) the gate's own rules compare.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from accelopt_profiling.problems.discovery.problem_files import top_level_names
from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch, readable
from accelopt_profiling.problems.layout import SCALE, ProblemLayout
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef

if TYPE_CHECKING:
    from accelopt_profiling.problems.problem import Problem
    from accelopt_profiling.step_context import StepContext

NAMES = ("Model", "get_inputs", "get_init_inputs")
ENTRY = "ModelNew"
WEIGHT_SEED = 42  # seed_num of KernelBench's eval_kernel_against_ref
_MAX_SIBLINGS = 500


def _find(search: ProblemSearch) -> ProblemLookup | None:
    if ENTRY not in search.names:
        return None
    if search.names >= set(NAMES):
        return search.lookup("kernelbench", None, "KernelBench model in the kernel file")
    for file in readable(kernelbench_candidates(search.path)):
        if file.source and top_level_names(file.source.tree).keys() >= set(NAMES):
            imports = file.source.imports
            return search.lookup("kernelbench", file.path, file.origin, file.text, imports=imports)
    return None


def kernelbench_candidates(path: Path) -> list[ProblemFile]:
    """List the files beside a ``ModelNew`` file that may hold its ``Model``, likeliest first.

    They are named like the kernel file without an ending (``19_ReLU_triton.py`` has ``19_ReLU.py``), or carry
    one of the usual names of a reference.
    """
    usual = [path.parent / f"{name}.py" for name in ("reference", "model", "problem", "ref")]
    parts = re.split(r"[_\-.]", path.stem)
    shorter: list[Path] = []
    for file in sorted(path.parent.glob("*.py"))[:_MAX_SIBLINGS]:
        other = re.split(r"[_\-.]", file.stem)
        if file != path and len(other) < len(parts) and parts[: len(other)] == other:
            shorter.append(file)
    shorter.sort(key=lambda f: -len(f.stem))
    return [ProblemFile(f, f"KernelBench model in {f.name}") for f in [*shorter, *usual] if f != path]


def _load(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    import torch

    from accelopt_profiling.problems.call import seed_everything, to_device
    from accelopt_profiling.problems.discovery.entry import check_entry
    from accelopt_profiling.problems.loading.python_problem import (
        answer_of,
        list_of,
        problem_module,
        python_problem,
    )
    from accelopt_profiling.problems.problem import Call

    module, file = problem_module(context, ref, kernel_module)

    def construction() -> list[Any]:
        return list_of(module.get_init_inputs(), "get_init_inputs", "a list", file)

    def model() -> Any:
        seed_everything(WEIGHT_SEED)
        return module.Model(*construction())

    def reference(inputs: list[Any]) -> list[Any]:
        built = problem.redrawn_model()
        if any(isinstance(v, torch.Tensor) and v.dtype == torch.float64 for v in inputs):
            built = built.double()
        if torch.cuda.is_available():
            built, inputs = built.cuda(), [to_device(v) for v in inputs]
        seed_everything(WEIGHT_SEED)
        with torch.no_grad():
            return answer_of(problem, "Model", built(*inputs))

    def call(inputs: list[Any]) -> tuple[Call, list[Any]]:
        if ref.entry:
            check_entry(
                context.source.files[context.source.kernel],
                ref.entry,
                count=None,
                kernel_file=context.source.kernel,
                file=file,
            )
        return Call(ref.entry or ENTRY, "model", seed=WEIGHT_SEED), [construction(), list(inputs)]

    problem = python_problem(module, file, names=NAMES, call=call, layout=" (KernelBench's layout)")
    problem.reference, problem.model = reference, model
    return problem


_ABOUT = """\
`ModelNew` in the kernel file, and `Model`, `get_inputs` and `get_init_inputs` there too or in a file beside it:
`19_ReLU.py` for `19_ReLU_triton.py`, or `reference.py`, `model.py`, `problem.py`. Both models are built with the same
seeds (`random`, NumPy, torch), so they have the same weights."""

_KERNEL = """

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return scale(x)
"""
_MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
"""

LAYOUT = ProblemLayout(
    "kernelbench", "KernelBench", _load, _find,
    about=_ABOUT, example={"k.py": SCALE + _KERNEL, "model.py": _MODEL},
    names=NAMES, entry=ENTRY, answers=("Model", "get_inputs"), replaces=True, torch=True,
)  # fmt: skip
