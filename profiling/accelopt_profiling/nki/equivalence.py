"""The step ``nki.compare``: runs a file and its translation, each in its own dialect, and compares every launch.

Both run the problem's cases, and the profiled one with each flag of its launches, an argument that is True or False,
turned into the other value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.install import Emulation, emulated
from accelopt_profiling.nki.time_model.estimate import estimate
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.problems.call import run_problem
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, user_errors

#: The relative L2 distance of outputs that counts as equal where the problem states none: rounding in another order.
_RELATIVE = 2e-5
#: Cases besides the profiled one.
_CASES = 3
#: Flags that are turned one by one.
_FLAGS = 6
#: Elements that are compared at once, in float64.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class CompareParams:
    """``text`` is the translation; ``target`` the core that both are emulated on."""

    problem: ProblemRef
    text: str
    target: str
    seed: int = 0


@dataclass(frozen=True)
class CaseComparison:
    """One case of the problem. ``detail`` says where the outputs differ, or what stopped the translation; ``distance``
    is the largest relative L2 distance of an output; times are estimates, in microseconds. ``note`` says where the
    translation keeps more on the chip than there is, which its compiler writes out."""

    case: str
    equal: bool
    detail: str
    distance: float | None
    before_us: float | None
    after_us: float | None
    note: str = ""


@dataclass(frozen=True)
class KernelPath:
    """A way through the kernels: the sizes of a case, None for the profiled one, and the flags that are turned."""

    shape: Mapping[str, Any] | None = None
    turned: frozenset[str] = frozenset()

    @property
    def case(self) -> str:
        """What a person is told that this is."""
        sizes = ", ".join(f"{k}={v}" for k, v in (self.shape or {}).items())
        flags = f" with {' and '.join(sorted(self.turned))} turned" if self.turned else ""
        return (sizes or "the profiled case") + flags


def case_paths(problem: Problem) -> list[KernelPath]:
    """Return the profiled case, and the problem's further sizes."""
    return [KernelPath(shape) for shape in (None, *list(problem.shapes)[:_CASES])]


def turned_paths(emulation: Emulation) -> list[KernelPath]:
    """Return the profiled case with each flag of its launches turned, and with all of them."""
    flags = sorted({flag for machine in emulation.machines for flag in machine.flags})
    alone = [frozenset((flag,)) for flag in flags[:_FLAGS]]
    return [KernelPath(None, turned) for turned in (*alone, *([frozenset(flags)] if len(flags) > 1 else []))]


@dataclass(frozen=True)
class DialectComparison:
    """The comparison of each path, and of those that were not compared the reason."""

    cases: list[CaseComparison] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)


def compare_dialects(context: StepContext, params: CompareParams) -> DialectComparison:
    """Return the comparison of each path: the profiled case first.

    Raises:
        StepFailedError: the file, its problem or the translation cannot be loaded, or the file itself fails.
    """
    kernel = PurePosixPath(context.source.kernel)
    moved = str(kernel.with_name(f"{kernel.stem}_in_todays_nki.py"))
    context.write_generated(moved, params.text)
    core = hardware(params.target)
    with emulated("full", limits=core.limits, sdk=False):
        original = load_module(context)
        with user_errors(context):
            problem = load_problem(context, params.problem, original)
        translation = load_module(context, moved)
        relative = problem.tolerance.relative or _RELATIVE
        comparison = DialectComparison()
        paths = case_paths(problem)
        for path in paths:
            before = _Run(problem, params, path, core)
            try:
                with user_errors(context):
                    emulation = before.perform(original)
            except StepFailedError as failed:
                if not path.turned:
                    raise
                comparison.not_compared.append(f"{path.case}: the original fails: {failed.error.message}")
                continue
            if path == KernelPath():
                paths += turned_paths(emulation)
            after = _Run(problem, params, path, core)
            comparison.cases.append(_compared(path.case, before, after, translation, relative))
            context.emit(asdict(comparison))
    return comparison


class _Run:
    """One run of one of the two files: the results of its launches in order, and the estimate of their time."""

    def __init__(self, problem: Problem, params: CompareParams, path: KernelPath, core: Any) -> None:
        self._problem, self._params, self._path, self._core = problem, params, path, core
        self.results: list[list[Array]] = []
        self.us: float | None = None
        self.faults: list[str] = []
        self.note = ""

    def perform(self, module: ModuleType) -> Emulation:
        inputs = self._problem.inputs(self._params.seed, self._path.shape)
        turned = self._path.turned
        with emulated(
            "full", limits=self._core.limits, sdk=False, results=True, turned_flags=turned
        ) as emulation:
            run_problem(self._problem, module, inputs)
        self.results = [m.results or [] for m in emulation.machines]
        self._estimate(emulation)
        return emulation

    def _estimate(self, emulation: Emulation) -> None:
        traces = [m.trace for m in emulation.machines if m.trace.instructions]
        self.us = sum(estimate(trace, self._core).us for trace in traces)
        findings = [f for m in emulation.machines for f in m.findings]
        self.faults = [f.message for f in findings if f.severity == "error"]
        self.note = next((f.message for f in findings if f.code == "capacity"), "")


def _compared(
    case: str, before: _Run, after: _Run, translation: ModuleType, relative: float
) -> CaseComparison:
    try:
        after.perform(translation)
    except KernelFaultError as fault:
        return CaseComparison(case, False, f"line {fault.line}: {fault.message}", None, before.us, None)
    except Exception as error:
        return CaseComparison(case, False, f"{type(error).__name__}: {error}", None, before.us, None)
    distance, detail = _difference(before.results, after.results, relative)
    if not any(array.size for launch in before.results for array in launch):
        detail = "the original's launches write nothing that could be compared"
    if not detail and after.faults and not before.faults:
        detail = after.faults[0]
    return CaseComparison(
        case,
        not detail,
        detail=detail,
        distance=distance,
        before_us=before.us,
        after_us=after.us,
        note=after.note,
    )


def _difference(
    left: list[list[Array]], right: list[list[Array]], relative: float
) -> tuple[float | None, str]:
    """Return the largest distance of two lists of launches' results, and what is wrong with it."""
    if [[a.shape for a in launch] for launch in left] != [[a.shape for a in launch] for launch in right]:
        return None, "the launches, or the shapes of their outputs, differ"
    worst, detail = 0.0, ""
    for number, (one, other) in enumerate(zip(left, right, strict=True), 1):
        for a, b in zip(one, other, strict=True):
            far, at, wrong = _distance(a.reshape(-1), b.reshape(-1))
            place = ", ".join(str(int(n)) for n in np.unravel_index(at, a.shape)) if a.size else ""
            if wrong and not detail:
                detail = f"launch {number}: element [{place}] is {b.reshape(-1)[at]}, not {a.reshape(-1)[at]}"
            elif far > relative and not detail:
                detail = f"launch {number}: element [{place}] is {b.reshape(-1)[at]:.6g}, not {a.reshape(-1)[at]:.6g}"
            worst = max(worst, far)
    return worst, detail


def _distance(a: Any, b: Any) -> tuple[float, int, bool]:
    """Return the relative L2 distance, the element that differs most, and whether one is finite in one of them only."""
    square, size, most, at = 0.0, 0.0, -1.0, 0
    for first in range(0, a.size, _CHUNK):
        x, y = (v[first : first + _CHUNK].astype(np.float64) for v in (a, b))
        finite = np.isfinite(x)
        if not np.array_equal(finite, np.isfinite(y)):
            return 0.0, first + int((finite != np.isfinite(y)).argmax()), True
        gap = np.abs(np.where(finite, x - y, 0))
        square, size = square + float(gap @ gap), size + float(np.square(x[finite]).sum())
        if gap.size and gap.max() > most:
            most, at = float(gap.max()), first + int(gap.argmax())
    return (square / max(size, 1e-30)) ** 0.5, at, False
