"""Load problems written in Python; here what all their layouts share, and the layout ``get_inputs``, ``reference``.

Optional names of such a file: ``tolerance`` (a number, or ``{"rtol": ..., "atol": ...}``), ``shapes`` (a list of
keyword arguments for ``get_inputs``; the key ``count`` of each says how often the case occurred, ``count`` of the file
how often the main one), ``entry`` (the function of the kernel file that takes the inputs, or its name), ``keywords``
(the names by which the last inputs are passed), ``grid`` (of an entry that is a Triton kernel), ``on_chip`` (inputs
that an NKI kernel takes as tiles in SBUF), ``backward = True`` (gradients are computed too, and compared with the
reference's). Without ``reference`` the kernels are measured and their results not checked; a rewrite is compared with
the original.
"""

from __future__ import annotations

import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from numbers import Complex, Real
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_profiling.jobs import Source
from accelopt_profiling.problems.discovery.entry import check_entry, find_entry
from accelopt_profiling.problems.loading.call import perform, seed_everything, with_gradients
from accelopt_profiling.problems.loading.sizes import integer_constants, name_numbers
from accelopt_profiling.problems.problem import Call, CallStyle, Problem, ProblemError, Tolerance
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module

#: The functions of a problem that say how large it is.
DRAWING = ("get_inputs", "get_init_inputs")
#: The key of a case that says how often it occurred; it is no argument of ``get_inputs``.
COUNT = "count"
#: The keys of a ``tolerance`` in the words of NumPy and torch.testing, and in the project's own.
_TOLERANCE_KEYS = {"rtol": "relative", "atol": "absolute", "relative": "relative", "absolute": "absolute"}


class PythonProblem(Problem, ABC):
    """A problem whose functions and classes ``module``, imported from ``file``, holds under ``names``.

    ``entry`` is the entry point that a comment or the problem names; it is looked for in the kernel file of ``source``.

    Raises:
        ProblemError: a name is missing, or ``tolerance``, ``shapes`` or ``entry`` are not what they should be.
    """

    def __init__(
        self,
        module: ModuleType,
        file: str,
        names: Sequence[str],
        source: Source,
        entry: str | None = None,
        layout: str = "",
    ) -> None:
        self.module, self._module = module, module
        self._file, self._source = file, source
        for name in names:
            if not callable(getattr(module, name, None)):
                what = "class" if name[0].isupper() else "function"
                message = f"{file} has no {what} `{name}`{layout}; add one."
                raise ProblemError("problem-invalid", message, file)
        self.tolerance = parse_tolerance(getattr(module, "tolerance", None), file)
        listed = parse_shapes(getattr(module, "shapes", []), file)
        self.shapes: Sequence[Mapping[str, Any]] = [_without_count(shape) for shape in listed]
        main = getattr(module, COUNT, 0)  # in a kernel file it may be a function
        self.counts = parse_counts(main if type(main) is int else 0, listed, file)
        self.axes = integer_axes(module.get_inputs)
        self.constants: Mapping[str, int] = {}
        if not self.axes:
            drawing = {n: name_numbers(module, f) for n in DRAWING if callable(f := getattr(module, n, None))}
            vars(module).update(drawing)
            self.constants = integer_constants(module, drawing.values())
        self._entry = entry

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        drawn = self._module.get_inputs(**(shape or {}))
        if isinstance(drawn, (str, bytes, Mapping)):
            message = (
                f"`get_inputs` returned a value of type {type(drawn).__name__}; return a list of inputs."
            )
            raise ProblemError("problem-invalid", message, self._file)
        return self._as_list("get_inputs", drawn, "a list of inputs")

    @abstractmethod
    def reference(self, inputs: list[Any]) -> list[Any] | None:
        """See ``Problem``."""

    @abstractmethod
    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        """See ``Problem``."""

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        call, arguments = self.call(inputs)
        return perform(module, call, arguments, self._file)

    def _entry_for(self, count: int) -> str:
        """Return the name of the function to call with ``count`` arguments: as stated, or as the syntax tells."""
        text = self._source.files[self._source.kernel]
        if self._entry is None:
            return find_entry(text, count, self._file)
        if ":" not in self._entry and not self._entry_from_elsewhere():
            check_entry(text, self._entry, count, self._source.kernel, self._file)
        return self._entry

    def _entry_from_elsewhere(self) -> bool:
        """Tell that the kernel's module, where it is loaded, has the entry from another file: a problem may have put
        it there, which the syntax of the kernel file does not show."""
        name = Path(self._source.kernel).stem
        entry = getattr(sys.modules.get(name), str(self._entry), None)
        return entry is not None and getattr(entry, "__module__", name) != name

    def _outputs(self, name: str, value: Any) -> list[Any]:
        """Return what the reference ``name`` returned as a list, if it can be compared."""
        outputs = self._as_list(name, value)
        self.returns_one = not isinstance(value, (list, tuple))
        if wrong := [v for v in _leaves(outputs) if v is not None and not _comparable(v)]:
            returned = f"`{name}` returned a value of type {type(wrong[0]).__name__}"
            message = f"{returned}, which cannot be compared; return arrays, tensors or numbers."
            raise ProblemError("problem-invalid", message, self._file)
        return outputs

    def _as_list(self, name: str, value: Any, wanted: str = "the right outputs") -> list[Any]:
        if value is None:
            raise ProblemError("problem-empty", f"`{name}` returned nothing; return {wanted}.", self._file)
        return list(value) if isinstance(value, (list, tuple)) else [value]


class ModuleProblem(PythonProblem):
    """``get_inputs()`` and ``reference(*inputs)``, in the kernel file or beside it.

    Without ``reference`` the results of ``original``, the module of the original kernel, are the right ones: they
    cannot be had in float64. None of both leaves the kernel unchecked.
    """

    def __init__(
        self,
        module: ModuleType,
        file: str,
        entry: str | None,
        source: Source,
        original: Callable[[], ModuleType] | None = None,
    ) -> None:
        entry = entry or parse_entry(getattr(module, "entry", None), file)
        super().__init__(module, file, ["get_inputs"], source, entry)
        self.own_reference = hasattr(module, "reference")
        if self.own_reference and not callable(module.reference):
            message = f"{file} has no function `reference`: the name is bound to something else; make it a function."
            raise ProblemError("problem-invalid", message, file)
        self._original = original
        self._keywords = parse_names(getattr(module, "keywords", []), "keywords", file)
        self._on_chip = parse_names(getattr(module, "on_chip", []), "on_chip", file)
        self._backward = getattr(module, "backward", False) is True  # in a kernel file it may be a function
        grid = getattr(module, "grid", [])
        self._grid = parse_names([grid] if isinstance(grid, str) else grid, "grid", file)

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        if self.own_reference:
            if self._backward:
                return self._outputs("reference", with_gradients(self._module.reference, inputs, {}))
            return self._outputs("reference", self._module.reference(*inputs))
        return self.run(self._original(), inputs) if self._original else None

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        if not self._keywords and not self._grid and not self._on_chip:
            return Call(self._entry_for(len(inputs)), backward=self._backward), inputs
        if self._entry is None:
            message = (
                f"{self._file} states `keywords`, `grid` or `on_chip`; name the function in `entry` as well."
            )
            raise ProblemError("problem-invalid", message, self._file)
        style: CallStyle = "launch" if self._grid else "returns"
        return Call(
            self._entry,
            style,
            keywords=self._keywords,
            grid=self._grid,
            on_chip=self._on_chip,
            backward=self._backward,
        ), inputs


def load_module_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    module, file = problem_module(context, ref, kernel_module)
    original = cache(partial(load_module, context)) if kernel_module is None else None
    return ModuleProblem(module, file, ref.entry, context.source, original)


def problem_module(
    context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None
) -> tuple[ModuleType, str]:
    """Import the file that holds the problem, often the kernel file itself; return it and its path in the job."""
    if ref.path is None or ref.path == context.source.kernel:
        return kernel_module or load_module(context), context.source.kernel
    return load_module(context, ref.path), ref.path


def parse_tolerance(value: Any, file: str | None) -> Tolerance:
    """Return the stated tolerance: nothing, a relative one, or ``{"rtol": ..., "atol": ...}``.

    ``rtol`` may also be called ``relative`` and ``atol`` ``absolute``. Both are finite and not negative.

    Raises:
        ProblemError: it is something else; the message names the file and the value.
    """
    if value is None:
        return Tolerance()
    given = value if isinstance(value, Mapping) else {"rtol": value}
    parts: dict[str, float] = {}
    fault = ""
    for key, part in given.items():
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
        shown = repr(value)[:80]
        why = f" ({fault})" if fault else ""
        message = (
            f"`tolerance` in {file or 'the problem'} is {shown}{why}; give a number >= 0, which is relative, or "
            '{"rtol": ..., "atol": ...} with such numbers.'
        )
        raise ProblemError("problem-invalid", message, file)
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
    message = (
        f"`shapes` in {file or 'the problem'} is {repr(value)[:80]}; give a list of dictionaries, keyword arguments for"
        " `get_inputs`."
    )
    raise ProblemError("problem-invalid", message, file)


def parse_counts(main: Any, shapes: Sequence[Mapping[str, Any]], file: str | None) -> list[int]:
    """Return how often each case occurred: the main one (``count`` of the module), then each of ``shapes`` (its own key
    ``count``); 0 where that is not stated.

    Raises ProblemError: a count is no integer of at least 0.
    """
    counts = [main, *(shape.get(COUNT, 0) for shape in shapes)]
    if all(type(count) is int and count >= 0 for count in counts):
        return counts
    wrong = next(c for c in counts if type(c) is not int or c < 0)
    message = f"`count` in {file or 'the problem'} is {repr(wrong)[:80]}; give how often the case occurred."
    raise ProblemError("problem-invalid", message, file)


def _without_count(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in shape.items() if name != COUNT}


def parse_names(value: Any, name: str, file: str | None) -> list[str]:
    """Return the strings of the list ``name``. Raises ProblemError: it is something else."""
    if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return list(value)
    message = f"`{name}` in {file or 'the problem'} is {repr(value)[:80]}; give a list of strings."
    raise ProblemError("problem-invalid", message, file)


def parse_entry(value: Any, file: str | None) -> str | None:
    """Return the name of the stated entry point, which may be the function itself.

    Raises ProblemError: it is neither a name nor a function.
    """
    name = value if isinstance(value, str) else getattr(value, "__name__", None)
    if value is None or (isinstance(name, str) and name):
        return name
    shown = repr(value)[:80]
    message = (
        f"`entry` in {file or 'the problem'} is {shown}; give a function of the kernel file or its name."
    )
    raise ProblemError("problem-invalid", message, file)


def integer_axes(get_inputs: Callable[..., Any]) -> Mapping[str, int]:
    """Return the arguments of ``get_inputs`` whose default is an integer above 1, with that default."""
    try:
        parameters = inspect.signature(get_inputs).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in parameters if type(p.default) is int and p.default > 1}


def _leaves(value: Any) -> list[Any]:
    """Return the values in lists, tuples and dictionaries, however deep."""
    if isinstance(value, Mapping):
        value = list(value.values())
    return [leaf for v in value for leaf in _leaves(v)] if isinstance(value, (list, tuple)) else [value]


def _comparable(value: Any) -> bool:
    """Return True for an array, a tensor or a number."""
    return isinstance(value, Complex) or (hasattr(value, "dtype") and hasattr(value, "shape"))
