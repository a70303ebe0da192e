"""The step ``nki.infer``: find inputs with which a file's NKI kernels run, by tracing them on the emulator.

Calls are made without values first, and with them where a kernel needs values.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from math import prod
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from accelopt_profiling.failure_site import failure_sites
from accelopt_profiling.nki.data.dtypes import dtype_named
from accelopt_profiling.nki.emulator.diagnostics import (
    KernelFaultError,
    LoopsTooLongError,
    ValuesNeededError,
)
from accelopt_profiling.nki.emulator.machine import Mode
from accelopt_profiling.nki.install import Emulation, emulated
from accelopt_profiling.nki.launch_subjects import LaunchSubjects
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.problems.discovery.template import entry_functions, guessed_call, use_plain_types
from accelopt_profiling.problems.inference.alternatives import alternatives, smaller_calls
from accelopt_profiling.problems.inference.arguments import (
    InferredArgument,
    InferredCall,
    NoSizeError,
    names_in,
)
from accelopt_profiling.problems.inference.conventions import names_a_size, usual_size
from accelopt_profiling.problems.inference.entries import EntryCandidate
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem
from accelopt_profiling.problems.inference.problem_text import (
    argument_text,
    nki_problem_text,
    smallest_dimension,
)
from accelopt_profiling.problems.inference.repair import repair
from accelopt_profiling.problems.inference.repair_loop import InferenceRun, RepairLoop
from accelopt_profiling.problems.inference.usage import function_uses
from accelopt_profiling.source_text import syntax_of
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module

_ENTRIES = 6
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
#: What a kernel for the two cores of a launch says where there is one.
_TWO_CORES = re.compile(
    r"\blnc\b|lnc-?2|spmd grid|grid size|two cores|num_programs|n_prgs|num_shards", re.IGNORECASE
)
#: What a kernel asks for its part of the work by.
_PROGRAMS = re.compile(
    r"\b(num_programs|program_id|program_ndim|\w*program_sharding\w*|num_shards)\b", re.IGNORECASE
)
#: The name of an argument that is a tile in SBUF.
_ON_CHIP = re.compile(r"(^|_)sb(uf)?(_|$)")
#: Instructions of a launch that is tried: some seconds of tracing.
_MOST_INSTRUCTIONS = 100_000
#: Arguments of a failing statement that are marked in the text.
_MARKED = 3
#: A statement that issues an instruction.
_INSTRUCTION = re.compile(r"\b(nisa\.|isa\.|nl\.(load|store|matmul|transpose|copy)\b)")
#: What a fault says of an index that a tensor holds.
_INDEX = re.compile(r"An index (?:reaches \d+; dimension \d+ has size (?P<size>\d+)|leads to element)")
#: A call with whole numbers is run with values up to so many instructions and elements, so often.
_CHECKED_INSTRUCTIONS, _CHECKED_ELEMENTS, _DRAWS = 20_000, 1 << 25, 6
#: Elements of one tensor that a check can still compute with.
_MOST_ELEMENTS = 1 << 26


@dataclass
class _NkiRun(InferenceRun):
    emulation: Emulation

    @property
    def launched(self) -> list[str]:
        return sorted({m.trace.kernel for m in self.emulation.machines if m.trace.instructions})

    @property
    def remaining(self) -> str:
        if isinstance(self.error, LoopsTooLongError):
            return f"its loops are longer than {_MOST_INSTRUCTIONS:,} instructions"
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        faults = [f.message for m in self.emulation.machines for f in m.findings if f.severity == "error"]
        return faults[0] if faults else "" if self.launched else "no kernel was launched"

    @property
    def score(self) -> tuple[bool, bool, bool]:
        ended = self.error is None
        return (ended and not self.remaining, ended and bool(self.launched), bool(self.launched))

    @property
    def progress(self) -> tuple[int, ...]:
        """The number of lines that issued instructions, and the lines of the failure, outermost first; a run
        without one came further."""
        issued = {i.line for m in self.emulation.machines for i in m.trace.instructions}
        failed = (
            [site.statement.lineno for site in failure_sites(self.error)] if self.error is not None else []
        )
        return (len(issued), *(failed[::-1] if self.error is not None else (1 << 30,)))


def infer_nki(context: StepContext, params: InferParams) -> InferredProblem:
    """Return the best problem that was found; each better one is emitted as well.

    Raises:
        StepFailedError: the file cannot be loaded, or has nothing that could be called.
    """
    limits = hardware(params.target).limits
    with emulated("trace", limits=limits, sdk=False) as emulation:
        try:
            module = load_module(context)
        except StepFailedError as failed:
            if not isinstance(failed.__cause__, AssertionError) or not emulation.machines:
                raise
            with emulated("full", limits=limits, sdk=False):  # a check of the file's own wants values
                module = load_module(context)
        return _NkiLoop(context, params, module, limits).run()


def _is_refusal(error: BaseException) -> bool:
    """Tell that no argument can help: something is not there, or not allowed with any."""
    return isinstance(error, KernelFaultError) and error.code == "unsupported" and "HBM" not in error.message


def _said(error: BaseException) -> str:
    """Return the message of an error, and the condition that a check of the code states for it."""
    conditions = [
        ast.unparse(s.statement) for s in failure_sites(error)[:2] if isinstance(error, AssertionError)
    ]
    return " ".join([str(error), *conditions])


def _made(kind: Any, module: Any, names: list[str]) -> str | None:
    """Return an expression for an object of a class of ``module``: a member of an enumeration, or a call that gives
    what has no default a value by its annotation. ``names`` gets the classes that it names. None where there is none.
    """
    plain: dict[str, str] = {"bool": "False", "int": "1", "float": "1.0", "str": '""'}
    if not inspect.isclass(kind) or vars(module).get(kind.__name__) is not kind:
        return None
    if issubclass(kind, Enum):
        names.append(kind.__name__)
        return f"{kind.__name__}.{next(iter(kind)).name}"
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return None
    arguments: list[str] = []
    for parameter in parameters:
        if parameter.default is not parameter.empty or parameter.kind not in _NAMED:
            continue
        annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
        if annotation == "int" and names_a_size(parameter.name):
            value: str | None = str(usual_size(parameter.name))
        else:
            value = plain.get(annotation) or _made(getattr(module, annotation, None), module, names)
        if value is None:
            return None
        arguments.append(f"{parameter.name}={value}")
    names.append(kind.__name__)
    return f"{kind.__name__}({', '.join(arguments)})"


class _NkiLoop(RepairLoop[_NkiRun]):
    attempts = 48
    attempts_in_all = 600

    def __init__(self, context: StepContext, params: InferParams, module: Any, limits: Any) -> None:
        text = context.source.files[context.source.kernel]
        self._uses = function_uses(syntax_of(text), set())
        functions = [f for f in entry_functions(text, params.kernels) if f.name in self._uses]
        self._nodes = {function.name: function for function in functions[:_ENTRIES]}
        entries = [EntryCandidate(name, name, "function") for name in self._nodes]
        super().__init__(context, params, module, entries)
        self._limits = limits
        self._mode: Mode = "trace"
        self._involved: list[str] = []  # the arguments of the statement at which the last run failed
        self._guessed: dict[tuple[str, str], int] = {}  # (entry, size) -> its first value

    def first_call(self, entry: EntryCandidate) -> InferredCall:
        call = guessed_call(self._text, self._nodes[entry.function])
        self._make_objects(call)
        call.fill_dimensions()
        call.on_chip = [t.name for t in call.tensors if _ON_CHIP.search(t.name)]
        self._guessed |= {(call.entry, name): size for name, size in call.sizes.items()}
        return call

    def written(self, call: InferredCall, remaining: str = "") -> str:
        module = PurePosixPath(self._context.source.kernel).stem
        return nki_problem_text(call, remaining, module, self._involved)

    def arguments(self, call: InferredCall) -> dict[str, Any]:
        return {a.name: self._value(a, call) for a in call.arguments}

    def attempt(self, call: InferredCall, entry: EntryCandidate) -> _NkiRun:
        with emulated(self._mode, limits=self._limits, sdk=False, most=_MOST_INSTRUCTIONS) as emulation:
            values, error = self.run_entry(call, "launch" if call.grid else "returns")
        run = _NkiRun(error, values, emulation)
        involved = self._subjects(call, entry, run).involved(error) if error is not None else []
        self._involved = [a.name for a in involved[:_MARKED]]
        return run

    def _subjects(self, call: InferredCall, entry: EntryCandidate, run: _NkiRun) -> LaunchSubjects:
        return LaunchSubjects(
            call, self._text, self._uses[call.entry], entry, run.values, run.emulation.machines
        )

    def runs_otherwise(self, run: _NkiRun) -> bool:
        if isinstance(run.error, ValuesNeededError) and self._mode == "trace":
            self._mode = "full"
            return True
        return False

    def mend(
        self, call: InferredCall, entry: EntryCandidate, run: _NkiRun, reverse: bool = False
    ) -> str | None:
        if run.error is None:
            return self._bound_indices(call, entry, run)
        if isinstance(run.error, LoopsTooLongError):
            return self._shorten(call, entry)
        if not call.grid and _TWO_CORES.search(_said(run.error)):
            call.grid = ["2"]
            return "a launch over two cores"
        subjects = self._subjects(call, entry, run)
        subjects.reverse = reverse
        change = subjects.repair_fault(run.error) or repair(run.error, subjects)
        if change is None and not call.grid and _PROGRAMS.search(self._text):
            call.grid = ["2"]
            return "a launch over two cores"
        if change is not None:
            use_plain_types(call)
            self._make_room(call)
            call.fill_dimensions()
        return change

    def alternatives(
        self, call: InferredCall, entry: EntryCandidate, run: _NkiRun
    ) -> Iterator[tuple[str, InferredCall]]:
        if run.error is None or isinstance(run.error, LoopsTooLongError) or _is_refusal(run.error):
            return
        subjects = self._subjects(call, entry, run)
        for change, other in alternatives(call, str(run.error), subjects.involved(run.error)):
            self._make_room(other)
            yield change, other

    def improve(self, call: InferredCall, entry: EntryCandidate, run: _NkiRun, changes: list[str]) -> None:
        bounded = deepcopy(call)
        if change := self._bound_indices(bounded, entry, run):
            self.send(bounded, run, [*changes, change])

    def _bound_indices(self, call: InferredCall, entry: EntryCandidate, run: _NkiRun) -> str | None:
        """Draw the whole numbers of a call that runs without values low enough for what they index, where they leave it
        with values; None where they do not, or that takes too long."""
        drawn = [t for t in call.tensors if t.dtype.startswith(("int", "uint"))]
        issued = sum(len(m.trace.instructions) for m in run.emulation.machines)
        elements = sum(prod(call.shape(t)) for t in call.tensors)
        if (
            not drawn
            or issued > _CHECKED_INSTRUCTIONS
            or elements > _CHECKED_ELEMENTS
            or self._mode == "full"
        ):
            return None
        change: str | None = None
        self._mode = "full"
        try:
            for _ in range(_DRAWS):
                reached = _INDEX.search(str(self.attempt(call, entry).error))
                bounds = [t.bound or smallest_dimension(call) for t in drawn]
                if reached is None or max(bounds) == 1:
                    break
                size = int(reached["size"] or 0)
                lower = [min(b, size) for b in bounds]
                if not size or lower == bounds:
                    lower = [max(1, b // 4) for b in bounds]
                for tensor, bound in zip(drawn, lower, strict=True):
                    tensor.bound = bound
                change = f"whole numbers are below {max(lower)}"
        finally:
            self._mode = "trace"
        return change

    def passes(self, failed: _NkiRun, other: _NkiRun) -> bool:
        sites = failure_sites(failed.error) if isinstance(failed.error, KernelFaultError) else []
        if not sites or not _INSTRUCTION.search(ast.unparse(sites[0].statement)):
            return True
        lines = range(sites[0].statement.lineno, (sites[0].statement.end_lineno or 0) + 1)
        return any(i.line in lines for m in other.emulation.machines for i in m.trace.instructions)

    def _shorten(self, call: InferredCall, entry: EntryCandidate) -> str | None:
        """Make the size smaller with which the kernel's loops end in time, or with which they still run at least; None
        where there is none."""
        longer: tuple[str, InferredCall] | None = None
        for change, other in smaller_calls(call):
            if self._spent():
                break
            error = self.attempt(other, entry).error
            if error is None or (longer is None and isinstance(error, LoopsTooLongError)):
                longer = change, other
            if error is None:
                break
        if longer is None:
            return None
        change, other = longer
        call.__dict__.update(other.__dict__)
        call.shortened.append(change)
        return change

    def acceptable(self, call: InferredCall) -> bool:
        """Tell whether no repair made a tensor too large to compute with."""
        return all(self._fits(call, tensor) for tensor in call.tensors)

    def _make_room(self, call: InferredCall) -> None:
        """Make sizes that nothing asked for yet 1, the largest first, while a tensor is too large: what the code needs
        of them it will ask for."""
        guessed = [n for n, size in call.sizes.items() if self._guessed.get((call.entry, n)) == size]
        for name in sorted(guessed, key=lambda n: -call.sizes[n]):
            large = [t for t in call.tensors if not self._fits(call, t)]
            if any(name in names_in(dim) for t in large for dim in t.dims):
                call.sizes[name] = 1

    def _fits(self, call: InferredCall, tensor: InferredArgument) -> bool:
        try:
            return prod(call.shape(tensor)) <= _MOST_ELEMENTS
        except NoSizeError:
            return True

    def _make_objects(self, call: InferredCall) -> None:
        """Pass objects of the file's own classes, with their defaults, for the parameters that it annotates so; what
        has no default gets what its type and name usually mean."""
        for argument in call.arguments:
            annotation = self._uses[call.entry].parameters[argument.name].annotation
            kind = getattr(self._module, annotation, None)
            if not inspect.isclass(kind) or kind.__module__.partition(".")[0] in ("builtins", "numpy", "nki"):
                continue
            names: list[str] = []
            value = _made(kind, self._module, names)
            try:
                eval(value or "None()", {name: getattr(self._module, name) for name in names})  # noqa: S307  (written here)
            except Exception:
                continue
            assert value is not None
            argument.kind, argument.value, argument.reason = (
                "value",
                value,
                f"a {annotation} by its annotation",
            )
            call.imports += [name for name in names if name not in call.imports]
        call.drop_unused_sizes()

    def _value(self, argument: InferredArgument, call: InferredCall) -> Any:
        """Return an argument: of a tensor, where no values are needed, an array that takes no memory."""
        if argument.kind == "tensor" and self._mode == "trace":
            shape = tuple(call.shape(argument))
            return np.broadcast_to(np.zeros((), dtype=dtype_named(argument.dtype)), shape)
        namespace = {"np": np, "ml_dtypes": sys.modules.get("ml_dtypes"), **call.sizes}
        namespace |= {name: getattr(self._module, name) for name in call.imports}
        return eval(argument_text(argument, call), namespace)  # noqa: S307  (written here, in the sandbox)
