"""The third step, after the candidate has ended: what the outputs should have been, in float64 where it can
be.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from accelopt_profiling.gate.asked_work import count_work
from accelopt_profiling.gate.draw import Asked, case_digests
from accelopt_profiling.gate.emulation import GateDialect, emulation
from accelopt_profiling.gate.files import (
    FINISHED,
    RAW,
    TOLERANCE_FILE,
    case_folder,
    problem_errors,
    problem_files,
)
from accelopt_profiling.gate.hostwork import HostWork
from accelopt_profiling.gate.memory import byte_count
from accelopt_profiling.gate.tolerance import FURTHER, NEARBY, coarsest
from accelopt_profiling.gate.values import NotCarried, load_values, save_values
from accelopt_profiling.gate.written import with_written
from accelopt_profiling.jobs import Source, StepError
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.loading.call import check_answer
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.problem import Problem, ProblemError, Tolerance
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step import StepContext, StepFailed

#: The reference is run on inputs nearby where the inputs are not larger than this.
_NEARBY_BYTES = 8 << 20


@dataclass(frozen=True)
class ReferenceParams:
    """``source`` holds the original kernel file and the problem's files, as for ``draw``."""

    problem: ProblemRef
    source: Source
    dialect: GateDialect
    target: str
    cases: int


@dataclass(frozen=True)
class ReferenceCase:
    """``digests`` are of the inputs and arguments as this process found them: the client compares them with
    those of the drawing. ``precision`` says in which precision the expected values were computed, and
    ``note`` why not float64. ``layout_fault`` is why the candidate's outputs could not be brought into the
    reference's layout. ``unusable`` is why the reference has no answer at a shape, or on values, that the gate chose
    itself.
    """

    index: int
    precision: str
    digests: list[str] = field(default_factory=list)
    note: str = ""
    layout_fault: str = ""
    unusable: str = ""


@dataclass(frozen=True)
class ReferenceResult:
    """``work`` is what the reference computes, in elements by kind."""

    tolerance: Tolerance
    cases: list[ReferenceCase] = field(default_factory=list)
    work: dict[str, int] = field(default_factory=dict)


def reference(context: StepContext, params: ReferenceParams) -> ReferenceResult:
    """Run the problem's reference on every drawn case, in the inputs' own precision and in float64.

    Raises:
        StepFailed: the reference raised, or returned nothing; or the candidate left files where the answers go.
    """
    for index in range(params.cases):
        for name in ("expected", "native", "nearby", "further", *FINISHED.values()):
            if (case_folder(context, index) / name).exists():
                raise StepFailed(
                    StepError("tampered", "The candidate wrote into the folder of the expected values.")
                )
    with problem_files(context, params.source) as own, emulation(params.dialect, params.target):
        with problem_errors(own, "loading the problem: "):
            problem = load_problem(own, params.problem, None)
        work = HostWork()
        cases = [
            _one(context, own, problem, index, work)
            for index in range(params.cases)
            if (case_folder(context, index) / "inputs").is_dir()
        ]
        file = context.folder / "gate" / TOLERANCE_FILE
        file.unlink(missing_ok=True)
        file.write_text(json.dumps(to_plain(problem.tolerance)), encoding="utf-8")
        return ReferenceResult(problem.tolerance, cases, work.elements)


def _one(
    context: StepContext, own: StepContext, problem: Problem, index: int, work: HostWork
) -> ReferenceCase:
    folder = case_folder(context, index)
    context.emit({"reference": index})
    digests = case_digests(context, index)
    asked = from_plain(Asked, load_values(folder / "call")[0])
    try:
        with problem_errors(own, "the reference: "):
            native = _answer(problem, load_values(folder / "inputs"), asked.written)
            if not native:
                raise ProblemError("problem-empty", "The problem has no reference.")
            if index == 0:
                check_answer(native)
        expected, precision, note = _in_float64(
            problem, load_values(folder / "inputs"), native, asked.written
        )
        _save(folder / "native", native)
        _save(folder / "expected", expected)
        if precision in ("float64", "exact"):
            _save_nearby(problem, folder, expected, asked.written)
    except StepFailed as failed:
        refused = asked.derived or (asked.altered and failed.error.code == "problem-raised")
        if not refused or failed.error.code == "tampered":
            raise
        return ReferenceCase(index, "", digests, unusable=failed.error.message[:300])
    if asked.twice:
        count_work(problem, load_values(folder / "inputs"), work)
    fault = ""
    if (folder / "outputs").is_dir() and getattr(problem, "rearranges", False):
        try:
            fault = _finish(problem, folder, native)
        except ProblemError:
            raise
        except Exception as error:  # outputs of any shape or kind meet the problem's own code here
            fault = f"{type(error).__name__}: {error}"
    return ReferenceCase(index, precision, digests, note, fault)


def _answer(problem: Problem, inputs: list[Any], written: list[int]) -> list[Any]:
    """What the reference returns, and what it leaves in the inputs that it writes to."""
    return with_written(lambda: problem.reference(inputs), inputs, written)


def _finish(problem: Problem, folder: Any, native: list[Any]) -> str:
    """Bring the candidate's raw outputs into the reference's layout, by the problem's own code."""
    for raw in RAW:
        finished = FINISHED[raw]
        if not (folder / raw).is_dir():
            continue
        outputs = load_values(folder / raw)
        try:
            changed = problem.finish(outputs, native)
        except Exception:
            if raw in ("idle", "original"):
                continue
            raise
        if changed is not outputs:
            save_values(folder / finished, changed)
    return ""


def _in_float64(
    problem: Problem, inputs: list[Any], native: list[Any], written: list[int]
) -> tuple[list[Any], str, str]:
    """The reference on float64 copies of the inputs, its precision, and why it is not float64 where it is
    not.
    """
    own = _coarsest(native)
    if own is None:
        return native, "exact", ""
    if not getattr(problem, "float64", True):
        return native, own, "the original kernel is the reference, in its own precision"
    try:
        expected = _answer(problem, [widen(v) for v in inputs], written)
    except Exception as error:  # references often insist on a dtype; the native run has shown that they work
        why = f"{type(error).__name__}: {error}"[:200]
        return native, own, f"the reference does not run in float64 ({why})"
    if len(expected) != len(native):
        return native, own, "the reference returns something else in float64"
    reached = _coarsest(expected)
    if reached != "float64":
        return expected, str(reached), f"the reference computes in {reached} whatever its inputs are"
    return expected, "float64", ""


def _save_nearby(problem: Problem, folder: Path, expected: list[Any], written: list[int]) -> None:
    """What the reference gives for inputs nearby, and further off where it rounds floats to whole numbers; where it is
    soon done.
    """
    inputs = load_values(folder / "inputs")
    own = _coarsest(inputs)
    if byte_count(inputs) > _NEARBY_BYTES or own is None:
        return
    near = NEARBY.get(own, NEARBY["float32"])
    floats = [d.startswith(("float", "bfloat")) for d in _dtypes(expected)]
    runs = [("nearby", near)] if any(floats) else []
    for name, by in runs if all(floats) else [*runs, ("further", FURTHER * near)]:
        moved = _moved([widen(v) for v in inputs], by, np.random.default_rng(1))
        try:
            found = _answer(problem, moved, written)
        except Exception:  # it did run on the inputs themselves
            return
        if len(found) == len(expected):
            _save(folder / name, found)


def _moved(value: Any, by: float, generator: np.random.Generator) -> Any:
    """Float64 arrays and tensors with each element off by up to ``by`` of its size."""
    if type(value) in (list, tuple):
        return type(value)(_moved(v, by, generator) for v in value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor) and value.is_floating_point():
        return value * torch.from_numpy(1.0 + by * generator.uniform(-1, 1, tuple(value.shape)))
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value * (1.0 + by * generator.uniform(-1, 1, value.shape))
    return value


def widen(value: Any) -> Any:
    """Float arrays and tensors as float64, everything else as it is; lists and tuples inside."""
    if type(value) in (list, tuple):
        return type(value)(widen(v) for v in value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().double() if value.is_floating_point() else value
    if isinstance(value, np.ndarray) and str(value.dtype).startswith(("float", "bfloat")):
        return value.astype(np.float64)
    return value


def _coarsest(values: Any) -> str | None:
    """The coarsest float dtype among the arrays of ``values``; None when there is no float array."""
    return coarsest(_dtypes(values))


def _dtypes(values: Any) -> list[str]:
    if isinstance(values, (list, tuple)):
        return [d for v in values for d in _dtypes(v)]
    if type(values) is float:
        return ["float64"]
    return [str(values.dtype).removeprefix("torch.")] if hasattr(values, "dtype") else []


def _save(folder: Any, values: list[Any]) -> None:
    try:
        save_values(folder, values)
    except NotCarried as error:
        message = f"The reference's result cannot be compared: {error}."
        raise StepFailed(StepError("problem-invalid", message)) from error
    except FileExistsError:
        raise StepFailed(
            StepError("tampered", "The candidate wrote into the folder of the expected values.")
        ) from None
