"""NKIBench's layout, as AccelOpt publishes it: NumPy functions beside an NKI kernel."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from accelopt_profiling.problems.discovery.search import ProblemFile, ProblemSearch
from accelopt_profiling.problems.layout import ProblemLayout
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef
from accelopt_profiling.source_text import UnreadableFileError, read_text, resolve_links

if TYPE_CHECKING:
    from accelopt_profiling.problems.problem import Problem
    from accelopt_profiling.step_context import StepContext

NAMES = ("get_inputs", "forward", "transform_to_nki_inputs", "transform_nki_outputs")
RELATIVE_TOLERANCE = 2e-5  # rel_tol of NKIBench's KernelWrapper, in float32


def _find(search: ProblemSearch) -> ProblemLookup | ProblemFile | None:
    if search.names >= set(NAMES):
        return search.lookup("nkibench", None, "NKIBench functions in the kernel file")
    reference = nkibench_reference(search.path)
    return ProblemFile(reference, f"NKIBench reference {reference.name}") if reference else None


def nkibench_reference(path: Path) -> Path | None:
    """Return the reference of a kernel in NKIBench's folders.

    ``summary.json`` names it, or it is ``../reference/<stem>_numpy_*.py``.
    """
    root = path.parent.parent
    try:
        data = json.loads(read_text(root / "summary.json"))
    except (UnreadableFileError, ValueError, RecursionError):
        data = {}
    for task in _implementations(data):
        reference = resolve_links(root / task["task"])
        if resolve_links(root / task["kernel"]) == path and reference.is_file():
            return reference
    stem = re.sub(r"_\d+$", "", path.stem)
    folder = root / "reference"
    if path.parent.name == "kernels" and folder.is_dir():
        matches = sorted(folder.glob(f"{stem}_numpy_*.py"))
        if matches:
            return matches[0].resolve()
    return None


def _implementations(data: object) -> list[dict[str, str]]:
    implementations: list[dict[str, str]] = []
    operators = data.values() if isinstance(data, dict) else []
    for operator in operators:
        cases = operator.get("cases") if isinstance(operator, dict) else None
        for case in cases.values() if isinstance(cases, dict) else []:
            for item in case.get("impls", []) if isinstance(case, dict) else []:
                if (
                    isinstance(item, dict)
                    and isinstance(item.get("task"), str)
                    and isinstance(item.get("kernel"), str)
                ):
                    implementations.append(item)
    return implementations


def _load(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    from accelopt_profiling.problems.loading.python_problem import (
        answer_of,
        entry_for,
        list_of,
        problem_module,
        python_problem,
    )
    from accelopt_profiling.problems.problem import Call, Tolerance

    module, file = problem_module(context, ref, kernel_module)

    def call(inputs: list[Any]) -> tuple[Call, list[Any]]:
        changed = module.transform_to_nki_inputs(list(inputs))
        arguments = list_of(changed, "transform_to_nki_inputs", "the kernel's arguments", file)
        return Call(entry_for(context.source, ref.entry, len(arguments), file)), arguments

    def finish(outputs: list[Any], expected: list[Any]) -> list[Any]:
        result = outputs[0] if len(outputs) == 1 else tuple(outputs)
        reference = expected[0] if len(expected) == 1 else tuple(expected)
        changed = module.transform_nki_outputs(result, reference)
        return list_of(changed, "transform_nki_outputs", "the outputs in the reference's layout", file)

    problem = python_problem(module, file, names=NAMES, call=call, layout=" (NKIBench's layout)")
    problem.reference = lambda inputs: answer_of(problem, "forward", module.forward(*inputs))
    problem.finish = finish
    if getattr(module, "tolerance", None) is None:
        problem.tolerance = Tolerance(RELATIVE_TOLERANCE)
    return problem


_ABOUT = """\
`get_inputs`, `forward`, `transform_to_nki_inputs` and `transform_nki_outputs` in one file, the layout of AccelOpt's
data set: in the kernel file itself, named by `summary.json`, or `../reference/<name>_numpy_*.py` for a file in
`kernels/`. The kernel is called `kernel` or `optimized_kernel`. The relative tolerance is 2e-5 unless the file states
another."""

_EXAMPLE = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out


def get_inputs():
    return [np.random.normal(size=(64, 128)).astype(np.float32)]


def forward(x):
    return 2 * x


def transform_to_nki_inputs(inputs):
    return [inputs[0].T.copy()]


def transform_nki_outputs(result, reference):
    return [result.T]
"""

LAYOUT = ProblemLayout(
    "nkibench", "NKIBench", _load, _find,
    about=_ABOUT, example={"k.py": _EXAMPLE}, names=NAMES, answers=("forward", "get_inputs"),
)  # fmt: skip
