"""The first step: draw the inputs. Only the problem's code runs here; the seeds end with this process."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from accelopt_profiling.gate.cases import Case
from accelopt_profiling.gate.distributions import change
from accelopt_profiling.gate.emulation import GateDialect, emulation
from accelopt_profiling.gate.files import case_folder, problem_errors, problem_files
from accelopt_profiling.gate.values import NotCarried, digest, save_values
from accelopt_profiling.jobs import Source, StepError
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.call import Call
from accelopt_profiling.problems.load import load_problem
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step import StepContext, StepFailed


@dataclass(frozen=True)
class DrawParams:
    """``source`` holds the original kernel file and the problem's files: never anything of a candidate."""

    problem: ProblemRef
    source: Source
    dialect: GateDialect
    target: str
    cases: list[Case]
    input_bytes: int


@dataclass(frozen=True)
class DrawnCase:
    """A case as drawn. ``digests`` are of the saved inputs and of the saved arguments; ``left_out`` says why
    a case was not drawn. ``shapes`` are those of the array inputs.
    """

    index: int
    name: str
    distribution: str
    left_out: str = ""
    digests: list[str] = field(default_factory=list)
    call: dict[str, Any] = field(default_factory=dict)
    shapes: list[list[int]] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    shape: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)


def draw(context: StepContext, params: DrawParams) -> list[DrawnCase]:
    """Draw every case and save it: ``inputs`` for the reference, ``arguments`` for the kernel. No seed is
    saved.
    """
    with problem_files(context, params.source) as own, emulation(params.dialect, params.target):
        with problem_errors(own, "loading the problem: "):
            problem = load_problem(own, params.problem, None)
        return _draw_all(context, own, problem, params)


def _draw_all(
    context: StepContext, own: StepContext, problem: Problem, params: DrawParams
) -> list[DrawnCase]:
    drawn: list[DrawnCase] = []
    first: list[Any] | None = None
    used = 0
    for index, case in enumerate(params.cases):
        empty = DrawnCase(index, case.name, case.distribution)
        if case.shape_index is not None:
            if case.shape_index >= len(problem.shapes):
                continue
            case = replace(case, shape=dict(problem.shapes[case.shape_index]))
        if used > params.input_bytes and index:
            drawn.append(
                replace(empty, left_out="the inputs of the cases before it are large", shape=case.shape)
            )
            continue
        with problem_errors(own, "drawing inputs: "):
            inputs = problem.inputs(case.seed, case.shape)
        notes: list[str] = []
        if case.distribution != "original":
            inputs, changed = change(case.distribution, inputs, case.seed ^ 0x5DEECE66D)
            if not changed:
                drawn.append(replace(empty, left_out="it does not change these inputs"))
                continue
            if case.distribution in ("large", "small") and first is not None and _same(first, inputs):
                notes.append("the inputs are the same for every seed")
        elif first is None:
            first = inputs
        elif case.shape is None and _same(first, inputs):
            inputs, _ = change("shuffled", inputs, case.seed)
            notes.append("the inputs are the same for every seed; their elements were shuffled")
        with problem_errors(own, "preparing the call: "):
            call, arguments = problem.call(inputs)
        used += _save(context, index, inputs, arguments, call, params.problem)
        folder = case_folder(context, index)
        arrays = _arrays(inputs)
        drawn.append(
            replace(
                empty,
                digests=[digest(folder / "inputs"), digest(folder / "arguments")],
                call=asdict(call),
                shapes=[list(a.shape) for a in arrays],
                dtypes=[str(a.dtype).removeprefix("torch.") for a in arrays],
                shape=case.shape,
                notes=notes,
            )
        )
        context.emit({"drawn": case.name})
    return drawn


def _save(
    context: StepContext, index: int, inputs: list[Any], arguments: list[Any], call: Call, ref: ProblemRef
) -> int:
    folder = case_folder(context, index)
    try:
        save_values(folder / "inputs", inputs)
        save_values(folder / "arguments", arguments)
        save_values(folder / "call", [to_plain(call)])
    except NotCarried as error:
        file = ref.path
        raise StepFailed(
            StepError("problem-invalid", f"An input cannot be checked: {error}.", file)
        ) from error
    return sum(f.stat().st_size for f in (folder / "inputs").iterdir())


def _arrays(values: Any) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return [a for v in values for a in _arrays(v)]
    return [values] if hasattr(values, "shape") and hasattr(values, "dtype") else []


def _same(one: list[Any], other: list[Any]) -> bool:
    pairs = list(zip(_arrays(one), _arrays(other), strict=False))
    return bool(pairs) and all(_equal(a, b) for a, b in pairs)


def _equal(a: Any, b: Any) -> bool:
    if tuple(a.shape) != tuple(b.shape):
        return False
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    return bool((a == b).all()) if hasattr(a, "all") else bool(a == b)
