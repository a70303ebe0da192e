"""The step ``nki.infer``: find inputs with which a file's NKI kernels run, by tracing them on the emulator.

Each entry is called with guessed arguments, without values; what its errors ask for is changed, a bounded number of
times. The best call is sent as it gets better, so that a crash or a time limit does not lose it.
"""

from __future__ import annotations

import inspect
import sys
import time
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from math import prod
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from accelopt_profiling.jobs import StepError
from accelopt_profiling.nki.data.dtypes import dtype_named
from accelopt_profiling.nki.emulator.diagnostics import ValuesNeededError
from accelopt_profiling.nki.emulator.machine import Mode
from accelopt_profiling.nki.install import Emulation, emulated
from accelopt_profiling.nki.launch_subjects import LaunchSubjects
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.problems.discovery.template import entry_functions, guessed_call, use_plain_types
from accelopt_profiling.problems.inference.arguments import InferredArgument, InferredCall, NoSizeError
from accelopt_profiling.problems.inference.conventions import names_a_size, usual_size
from accelopt_profiling.problems.inference.entries import EntryCandidate
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem
from accelopt_profiling.problems.inference.nki_problem_text import argument_text, nki_problem_text
from accelopt_profiling.problems.inference.repair import repair
from accelopt_profiling.problems.inference.usage import function_uses
from accelopt_profiling.problems.loading.call import perform
from accelopt_profiling.problems.problem import Call, CallStyle, ProblemError
from accelopt_profiling.source_text import parse_python
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module

#: Runs for one entry, and for all entries of a file together.
_ATTEMPTS = 32
_ATTEMPTS_IN_ALL = 96
_ENTRIES = 6
#: Elements of one tensor that a check can still compute with.
_MOST_ELEMENTS = 1 << 26


@dataclass
class _Trial:
    """One run: the exception that ended it, its launches, and the arguments that it was given by name."""

    error: BaseException | None
    emulation: Emulation
    values: dict[str, Any]

    @property
    def launched(self) -> list[str]:
        return sorted({m.trace.kernel for m in self.emulation.machines if m.trace.instructions})

    @property
    def remaining(self) -> str:
        """What went wrong first, "" where nothing did."""
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        faults = [f.message for m in self.emulation.machines for f in m.findings if f.severity == "error"]
        return faults[0] if faults else "" if self.launched else "no kernel was launched"

    @property
    def score(self) -> tuple[bool, bool, bool]:
        ended = self.error is None
        return (ended and not self.remaining, ended and bool(self.launched), bool(self.launched))


def infer_nki(context: StepContext, params: InferParams) -> InferredProblem:
    """Return the best problem that was found; each better one is emitted as well.

    Raises:
        StepFailedError: the file cannot be loaded, or has nothing that could be called.
    """
    limits = hardware(params.target).limits
    with emulated("trace", limits=limits, sdk=False):
        return _NkiInference(context, params, load_module(context), limits).run()


def _too_large(call: InferredCall) -> bool:
    """Tell whether repairs made a tensor too large."""
    try:
        return any(prod(call.shape(t)) > _MOST_ELEMENTS for t in call.tensors)
    except NoSizeError:
        return False


def _required_values(made: type) -> dict[str, bool | int | float | str]:
    """Return values for the parameters of a class that have no default and are annotated with a plain type."""
    plain: dict[str, bool | int | float | str] = {"bool": False, "int": 1, "float": 1.0, "str": ""}
    try:
        parameters = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):
        return {}
    given: dict[str, bool | int | float | str] = {}
    for parameter in parameters:
        annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
        if parameter.default is parameter.empty and annotation in plain:
            sized = annotation == "int" and names_a_size(parameter.name)
            given[parameter.name] = usual_size(parameter.name) if sized else plain[annotation]
    return given


class _NkiInference:
    def __init__(self, context: StepContext, params: InferParams, module: Any, limits: Any) -> None:
        self._context, self._module, self._limits = context, module, limits
        self._attempts, self._until = _ATTEMPTS_IN_ALL, time.process_time() + params.cpu_seconds
        self._text = context.source.files[context.source.kernel]
        self._uses = function_uses(parse_python(self._text), set())
        self._entries = [f for f in entry_functions(self._text, params.kernels) if f.name in self._uses]
        self._mode: Mode = "trace"
        self._best: tuple[tuple[bool, bool, bool], InferredProblem] | None = None

    def run(self) -> InferredProblem:
        for function in self._entries[:_ENTRIES]:
            call = guessed_call(self._text, function)
            self._make_objects(call)
            if self._try(call) or self._spent():
                break
        if self._best is None:
            message = "No function of the file launches its kernels, so there is nothing to infer inputs for."
            raise StepFailedError(StepError("problem-invalid", message, self._context.source.kernel))
        return self._best[1]

    def _spent(self) -> bool:
        return self._attempts <= 0 or time.process_time() > self._until

    def _try(self, call: InferredCall) -> bool:
        """Try one entry until it runs, nothing more can be repaired, or the time is over."""
        seen: set[str] = set()
        changes: list[str] = []
        for _ in range(_ATTEMPTS):
            text = self._text_of(call)
            if text in seen or self._spent():
                return False
            seen.add(text)
            trial = self._attempt(call)
            self._keep(call, trial, changes)
            if isinstance(trial.error, ValuesNeededError) and self._mode == "trace":
                self._mode = "full"
                seen.clear()
                continue
            if trial.error is None:
                return trial.score[0]
            made = self._next(call, trial, seen)
            if made is None:
                return False
            changes.append(made)
        return False

    def _next(self, call: InferredCall, trial: _Trial, seen: set[str]) -> str | None:
        """Change the call to one that was not tried: where two sizes take turns, both get the other one."""
        before = deepcopy(call)
        made: str | None = None
        for reverse in (False, True):
            call.__dict__.update(deepcopy(before).__dict__)
            made = self._repair(call, trial, reverse)
            if made is None:
                return None
            use_plain_types(call)
            call.drop_unused_sizes()
            if self._text_of(call) not in seen:
                break
        return made

    def _make_objects(self, call: InferredCall) -> None:
        """Pass objects of the file's own classes, with their defaults, for the parameters that it annotates so; what
        has no default gets what its type and name usually mean."""
        for argument in call.arguments:
            annotation = self._uses[call.entry].parameters[argument.name].annotation
            made = getattr(self._module, annotation, None)
            if not inspect.isclass(made) or made.__module__.partition(".")[0] in ("builtins", "numpy", "nki"):
                continue
            if issubclass(made, Enum):
                value = f"{annotation}.{next(iter(made)).name}"
            else:
                given = _required_values(made)
                try:
                    made(**given)
                except Exception:
                    continue
                value = f"{annotation}({', '.join(f'{name}={value!r}' for name, value in given.items())})"
            argument.kind, argument.value, argument.reason = (
                "value",
                value,
                f"a {annotation} by its annotation",
            )
            call.imports.append(annotation)
        call.drop_unused_sizes()

    def _text_of(self, call: InferredCall, remaining: str = "") -> str:
        return nki_problem_text(call, remaining, PurePosixPath(self._context.source.kernel).stem)

    def _attempt(self, call: InferredCall) -> _Trial:
        self._attempts -= 1
        values: dict[str, Any] = {}
        error: BaseException | None = None
        with emulated(self._mode, limits=self._limits, sdk=False) as emulation:
            try:
                values = {a.name: self._value(a, call) for a in call.arguments}
                inputs = list(values.values())
                style: CallStyle = "launch" if call.grid else "returns"
                perform(self._module, Call(call.entry, style, keywords=call.keywords, grid=call.grid), inputs)
            except ProblemError as stop:
                error = None if stop.code == "problem-empty" else stop
            except BaseException as stop:  # user code: whatever it raises is what is to be repaired
                error = stop
        return _Trial(error, emulation, values)

    def _value(self, argument: InferredArgument, call: InferredCall) -> Any:
        """Return an argument: of a tensor, where no values are needed, an array that takes no memory."""
        if argument.kind == "tensor" and self._mode == "trace":
            shape = tuple(call.shape(argument))
            return np.broadcast_to(np.zeros((), dtype=dtype_named(argument.dtype)), shape)
        known = {"np": np, "ml_dtypes": sys.modules.get("ml_dtypes"), **call.sizes}
        known |= {name: getattr(self._module, name) for name in call.imports}
        return eval(argument_text(argument, call), known)  # noqa: S307  (written here, in the sandbox)

    def _repair(self, call: InferredCall, trial: _Trial, reverse: bool) -> str | None:
        assert trial.error is not None
        before = deepcopy(call)
        entry = EntryCandidate(call.entry, call.entry, "function")
        subjects = LaunchSubjects(
            call, self._text, self._uses[call.entry], entry, trial.values, trial.emulation.machines
        )
        subjects.reverse = reverse
        try:
            return subjects.repair_fault(trial.error) or repair(trial.error, subjects)
        except NoSizeError:
            call.__dict__.update(before.__dict__)
            return None

    def _keep(self, call: InferredCall, trial: _Trial, changes: list[str]) -> None:
        if self._best is not None:  # of as good ones of an entry the last: more of it is mended
            score, problem = self._best
            other = score == trial.score and problem.entry != call.entry
            if score > trial.score or other or _too_large(call):
                return
        problem = InferredProblem(
            self._text_of(call, trial.remaining), call.entry, trial.launched, trial.score[0],
            trial.remaining[:300], list(changes),
        )  # fmt: skip
        self._best = (trial.score, problem)
        self._context.emit(problem)
