"""What the layouts of problems written in Python share."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from numbers import Complex, Real
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_profiling.comparison.values import leaves_in
from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.problems.call import run_problem, seed_everything
from accelopt_profiling.problems.discovery.entry import check_entry, find_entry
from accelopt_profiling.problems.loading.sizes import integer_constants, name_numbers
from accelopt_profiling.problems.problem import Call, Problem, ProblemError, Tolerance, no_reference
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module

#: The functions of a problem that say how large it is.
DRAWING = ("get_inputs", "get_init_inputs")
#: The key of a case that says how often it occurred; it is no argument of ``get_inputs``.
COUNT = "count"
#: The keys of a ``tolerance`` in the words of NumPy and torch.testing, and in the project's own.
_TOLERANCE_KEYS = {"rtol": "relative", "atol": "absolute", "relative": "relative", "absolute": "absolute"}


def python_problem(
    module: ModuleType,
    file: str,
    names: Sequence[str],
    call: Callable[[list[Any]], tuple[Call, list[Any]]],
    layout: str = "",
) -> Problem:
    """Return the problem whose functions and classes ``module``, imported from ``file``, holds under ``names``, without
    a reference.

    Raises:
        ProblemError: a name is missing, or ``tolerance`` or ``shapes`` are not what they should be.
    """
    for name in names:
        if not callable(getattr(module, name, None)):
            what = "class" if name[0].isupper() else "function"
            message = f"{file} has no {what} `{name}`{layout}; add one."
            raise ProblemError("problem-invalid", message, file)

    def inputs(seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        drawn = module.get_inputs(**(shape or {}))
        if isinstance(drawn, (str, bytes, Mapping)):
            message = (
                f"`get_inputs` returned a value of type {type(drawn).__name__}; return a list of inputs."
            )
            raise ProblemError("problem-invalid", message, file)
        return list_of(drawn, "get_inputs", "a list of inputs", file)

    problem = Problem(inputs, call, module=module, file=file)
    problem.tolerance = parse_tolerance(getattr(module, "tolerance", None), file)
    cases = parse_shapes(getattr(module, "shapes", []), file)
    problem.shapes = [{name: value for name, value in case.items() if name != COUNT} for case in cases]
    main = getattr(module, COUNT, 0)  # in a kernel file it may be a function
    problem.counts = parse_counts(main if type(main) is int else 0, cases, file)
    whole = whole_numbers(module.get_inputs)
    problem.axes = {name: size for name, size in whole.items() if type(size) is int and size > 1}
    problem.choices = {name: value for name, value in whole.items() if name not in problem.axes}
    if not problem.axes:
        drawing = {n: name_numbers(module, f) for n in DRAWING if callable(f := getattr(module, n, None))}
        vars(module).update(drawing)
        problem.constants = integer_constants(module, drawing.values())
    return problem


def entry_for(source: JobFiles, entry: str | None, count: int, file: str | None) -> str:
    """Return the name of the function to call with ``count`` arguments: as stated, or as the syntax tells.

    Raises ProblemError: the kernel file does not define it, or none or several functions fit.
    """
    if entry is None:
        return find_entry(source.files[source.kernel], count, file)
    if ":" not in entry and not _from_elsewhere(source, entry):
        check_entry(source.files[source.kernel], entry, count=count, kernel_file=source.kernel, file=file)
    return entry


def _from_elsewhere(source: JobFiles, entry: str) -> bool:
    """Tell that the kernel's module, where it is loaded, has the entry from another file: a problem may have put
    it there, which the syntax of the kernel file does not show."""
    name = Path(source.kernel).stem
    function = getattr(sys.modules.get(name), entry, None)
    return function is not None and getattr(function, "__module__", name) != name


def answer_of(problem: Problem, name: str, value: Any) -> list[Any]:
    """Return what the problem's reference ``name`` returned as a list.

    Raises ProblemError: it cannot be compared.
    """
    outputs = list_of(value, name, "the right outputs", problem.file)
    problem.returns_one = not isinstance(value, (list, tuple))
    if wrong := [v for v in leaves_in(outputs) if v is not None and not _comparable(v)]:
        returned = f"`{name}` returned a value of type {type(wrong[0]).__name__}"
        message = f"{returned}, which cannot be compared; return arrays, tensors or numbers."
        raise ProblemError("problem-invalid", message, problem.file)
    return outputs


def list_of(value: Any, name: str, advice: str, file: str | None) -> list[Any]:
    """Return what ``name`` returned as a list.

    Raises ProblemError: that was nothing, and not what is ``advice``.
    """
    if value is None:
        raise ProblemError("problem-empty", f"`{name}` returned nothing; return {advice}.", file)
    return list(value) if isinstance(value, (list, tuple)) else [value]


def problem_module(
    context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None
) -> tuple[ModuleType, str]:
    """Import the file that holds the problem, often the kernel file itself.

    Return it and its path in the job.
    """
    if ref.path is None or ref.path == context.source.kernel:
        return kernel_module or load_module(context), context.source.kernel
    return load_module(context, ref.path), ref.path


def compare_with_original(
    problem: Problem, context: StepContext, kernel_module: ModuleType | None
) -> Problem:
    """Let the original kernel, imported when it is first asked, be the problem's reference; there is none where the
    measured ``kernel_module`` is the original itself. Returns the problem.
    """
    original = cache(partial(load_module, context))
    problem.own_reference = False
    problem.reference = (
        (lambda inputs: run_problem(problem, original(), inputs)) if kernel_module is None else no_reference
    )
    return problem


def parse_tolerance(value: Any, file: str | None) -> Tolerance:
    """Return the stated tolerance: nothing, a relative one, or ``{"rtol": ..., "atol": ...}``.

    ``rtol`` may also be called ``relative`` and ``atol`` ``absolute``. Both are finite and not negative.

    Raises:
        ProblemError: it is something else; the message names the file and the value.
    """
    if value is None:
        return Tolerance()
    bounds = value if isinstance(value, Mapping) else {"rtol": value}
    parts: dict[str, float] = {}
    fault = ""
    for key, part in bounds.items():
        name = _TOLERANCE_KEYS.get(key) if isinstance(key, str) else None
        if name is None:
            fault = f"the key {key!r} is unknown"
        elif name in parts:
            fault = f"{key!r} is there twice, under two names"
        elif part is None:
            continue
        elif not _is_bound(part):
            fault = f"{key!r} is {part!r}" if isinstance(value, Mapping) else ""
        else:
            parts[name] = float(part)
            continue
        advice = 'a number >= 0, which is relative, or {"rtol": ..., "atol": ...} with such numbers'
        raise _misstated("tolerance", value, file=file, advice=advice, why=f" ({fault})" if fault else "")
    return Tolerance(**parts)


def _is_bound(value: Any) -> bool:
    """Return True for a finite number that is not negative, NumPy's included."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value) and float(value) >= 0
    except OverflowError:  # an integer beyond the floats
        return False


def parse_shapes(value: Any, file: str | None) -> list[Mapping[str, Any]]:
    """Return the stated shapes. Raises ProblemError: they are no list of dictionaries."""
    if (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(s, Mapping) for s in value)
    ):
        return list(value)
    raise _misstated("shapes", value, file, "a list of dictionaries, keyword arguments for `get_inputs`")


def parse_counts(main: Any, shapes: Sequence[Mapping[str, Any]], file: str | None) -> list[int]:
    """Return how often each case occurred: the main one (``count`` of the module), then each of ``shapes`` (its own key
    ``count``); 0 where that is not stated.

    Raises ProblemError: a count is no integer of at least 0.
    """
    counts = [main, *(shape.get(COUNT, 0) for shape in shapes)]
    if all(type(count) is int and count >= 0 for count in counts):
        return counts
    wrong = next(c for c in counts if type(c) is not int or c < 0)
    raise _misstated("count", wrong, file, "how often the case occurred")


def parse_names(value: Any, name: str, file: str | None) -> list[str]:
    """Return the strings of the list ``name``. Raises ProblemError: it is something else."""
    if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return list(value)
    raise _misstated(name, value, file, "a list of strings")


def parse_entry(value: Any, file: str | None) -> str | None:
    """Return the name of the stated entry point, which may be the function itself.

    Raises ProblemError: it is neither a name nor a function.
    """
    name = value if isinstance(value, str) else getattr(value, "__name__", None)
    if value is None or (isinstance(name, str) and name):
        return name
    raise _misstated("entry", value, file, "a function of the kernel file or its name")


def _misstated(name: str, value: Any, file: str | None, advice: str, why: str = "") -> ProblemError:
    statement = f"`{name}` in {file or 'the problem'} is {repr(value)[:80]}{why}"
    return ProblemError("problem-invalid", f"{statement}; give {advice}.", file)


def whole_numbers(get_inputs: Callable[..., Any]) -> Mapping[str, int]:
    """Return the arguments of ``get_inputs`` whose default is a whole number or a flag, with that default."""
    try:
        parameters = inspect.signature(get_inputs).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in parameters if isinstance(p.default, int)}


def _comparable(value: Any) -> bool:
    """Return True for an array, a tensor or a number."""
    return isinstance(value, Complex) or (hasattr(value, "dtype") and hasattr(value, "shape"))
