"""The step ``infer``: find inputs with which a file's Triton kernels run, by running them in this child process.

Calls are repaired by what their launches met in the kernel, accesses out of bounds and its errors, and by errors of
the host code. Tries are small, so that they are quick; what runs is given the sizes that such kernels have in use.
"""

from __future__ import annotations

import ast
import contextlib
import math
import os
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from accelopt_profiling.failure_site import error_text, failure_sites
from accelopt_profiling.problems.call import seed_everything
from accelopt_profiling.problems.inference.arguments import InferredArgument, InferredCall, NoSizeError
from accelopt_profiling.problems.inference.conventions import size_in_use, usual_size
from accelopt_profiling.problems.inference.entries import EntryCandidate, entry_candidates, is_jitted
from accelopt_profiling.problems.inference.guess import guess_call
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem
from accelopt_profiling.problems.inference.other_launchers import other_launchers
from accelopt_profiling.problems.inference.pointers import pointers
from accelopt_profiling.problems.inference.problem_text import problem_text
from accelopt_profiling.problems.inference.repair_loop import InferenceRun, RepairLoop
from accelopt_profiling.problems.inference.subjects import CallSubjects
from accelopt_profiling.problems.inference.usage import FunctionUse, function_uses
from accelopt_profiling.step_context import StepContext
from accelopt_profiling.triton.interpreter.work import SECOND
from accelopt_profiling.triton_adapter.runtime import JITFunction
from accelopt_profiling.worker.usercode import load_module

#: Elements of all tensors above which a call is not tried as it was guessed, and above which its gradients are tried
#: with zeros.
MOST_TRIED, LARGE = 1 << 24, 1 << 22
#: Bytes of all tensors together, and elements of one.
_MOST_BYTES = 1 << 30
_MOST_ELEMENTS = 1 << 28


def elements(call: InferredCall) -> int:
    """Return the number of elements of a call's tensors. Raises NoSizeError."""
    return sum(math.prod(call.shape(tensor)) for tensor in call.tensors)


def made_small(call: InferredCall) -> InferredCall:
    """Halve the largest sizes of a guessed call until it can be tried quickly: usual sizes of four dimensions are, all
    together, much. Sizes stay different ones, and 16 at least."""
    with contextlib.suppress(NoSizeError):
        while elements(call) > MOST_TRIED:
            sizes = set(call.sizes.values())
            halves = [(s, n) for n, s in call.sizes.items() if s >= 32 and s // 2 not in sizes]
            if not halves:
                break
            size, name = max(halves)
            call.sizes[name] = size // 2
    return call


def enlarged_calls(call: InferredCall) -> Iterator[InferredCall]:
    """Yield copies of a call with larger sizes, the largest first: all of them in use, all but the last dimensions, the
    last dimensions alone. Calls whose tensors are too large, or that are the call itself, are left out.
    """
    last = {tensor.dims[-1] for tensor in call.tensors if tensor.dims}
    product, meanings = _is_product(call), _of_matrices(call)
    previous_sizes = [call.sizes]
    for chosen in (set(call.sizes), set(call.sizes) - last, set(call.sizes) & last):
        larger = deepcopy(call)
        larger.sizes = {
            name: _larger(name, size, product, meanings) if name in chosen else size
            for name, size in call.sizes.items()
        }
        if larger.sizes not in previous_sizes and _fits(larger):
            previous_sizes.append(larger.sizes)
            yield larger


def _of_matrices(call: InferredCall) -> dict[str, str]:
    """Return sizes that count rows or columns, whatever their names usually mean: a batch or the size of a head that is
    a dimension of matrices and of nothing with more dimensions."""
    deeper = {dim for tensor in call.tensors if len(tensor.dims) > 2 for dim in tensor.dims}
    meanings: dict[str, str] = {}
    for tensor in call.tensors:
        for place, (of, like) in zip(tensor.dims, (("rows", "batch"), ("columns", "head_dim")), strict=False):
            if len(tensor.dims) == 2 and place not in deeper and usual_size(place) == usual_size(like):
                meanings.setdefault(place, of)
    return meanings


def _larger(name: str, size: int, product: bool, meanings: dict[str, str]) -> int:
    """Return the size by as much larger as its name has it in use; a size of a product is that of a square one."""
    if product:
        return max(size, 2048)
    if name in meanings:
        return max(size, size_in_use(meanings[name]))
    return size * max(1, size_in_use(name) // usual_size(name))


def _is_product(call: InferredCall) -> bool:
    """Tell whether the tensors are matrices that share dimensions in pairs: ``(m, k)``, ``(k, n)``."""
    shapes = [tensor.dims for tensor in call.tensors]
    return (
        len(call.sizes) == 3
        and len(shapes) >= 2
        and all(len(dims) == 2 and set(dims) <= set(call.sizes) for dims in shapes)
        and len({tuple(sorted(dims)) for dims in shapes}) >= 2
    )


def _fits(call: InferredCall) -> bool:
    total = 0
    for tensor in call.tensors:
        count = 1
        try:
            for size in call.shape(tensor):
                count *= max(1, size)
        except NoSizeError:
            return False
        if count > _MOST_ELEMENTS:
            return False
        total += count * (8 if tensor.dtype in ("int64", "float64") else 4 if "32" in tensor.dtype else 2)
    return total <= _MOST_BYTES


#: Work of a launch of a tried call after which its long loops are sampled.
LOOP_WORK = 2 * SECOND

#: How much larger a size is tried where a launch has no programs or leaves its tensors.
_GROWTH = (4, 32)

_ENTRIES = 8


@dataclass
class _TritonRun(InferenceRun):
    executions: list[Any]
    kernel_file: Path

    @property
    def score(self) -> tuple[bool, bool, bool]:
        good = any(e.error is None and not e.faults and e.launch.programs for e in self.executions)
        return (good and self.error is None, good, bool(self.executions))

    @property
    def failure(self) -> BaseException | None:
        return self.error or next((e.error for e in self.executions if e.error is not None), None)

    @property
    def launched(self) -> list[str]:
        return sorted({e.launch.name for e in self.executions})

    @property
    def empty(self) -> list[str]:
        """The kernels of which no launch had a program, sorted."""
        running = {e.launch.name for e in self.executions if e.launch.programs}
        return [name for name in self.launched if name not in running]

    @property
    def remaining(self) -> str:
        if self.error is not None:
            return f"{error_text(self.error)}{_where(self.error, self.kernel_file)}"
        fault = next((e for e in self.executions if e.error is not None or e.faults), None)
        if fault is None and (empty := self.empty):
            return f"{empty[0]} was launched with a grid of no programs"
        if fault is None:
            return "" if self.executions else "no kernel was launched"
        if fault.error is not None:
            return (
                f"{fault.launch.name} raised {error_text(fault.error)}{_where(fault.error, self.kernel_file)}"
            )
        from accelopt_profiling.triton.capture.session import describe

        return describe(fault.faults[0])


def infer(context: StepContext, params: InferParams) -> InferredProblem:
    """Return the best problem that was found.

    Each better one is emitted as well.

    Raises:
        StepFailedError: the file cannot be loaded, or has nothing that could be called.
    """
    from accelopt_profiling.triton.capture.install import emulated

    with emulated(params.target, sample=1):
        module = load_module(context)
    return _TritonLoop(context, params, module).run()


class _TritonLoop(RepairLoop[_TritonRun]):
    attempts = 24
    attempts_in_all = 64

    def __init__(self, context: StepContext, params: InferParams, module: Any) -> None:
        text = context.source.files[context.source.kernel]
        tree = ast.parse(text)
        names = [k.name.split("#")[0].split(".")[-1] for k in params.kernels]
        entries = entry_candidates(tree, names)
        jitted = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and is_jitted(n)}
        functions = function_uses(tree, jitted | set(names), _imported_functions(module, tree))
        self._kernels = {n: f.node for n, f in functions.items() if f.kernel}
        self._read = dict.fromkeys(entries, (text, functions))
        if all(entry.kind == "kernel" for entry in entries):
            others = _launched_elsewhere(context, params, module, tree)
            self._read.update(others)
            entries = [*others, *entries]
        super().__init__(context, params, module, entries[:_ENTRIES])

    def first_call(self, entry: EntryCandidate) -> InferredCall:
        text, functions = self._read[entry]
        return made_small(guess_call(text, entry, functions))

    def written(self, call: InferredCall, remaining: str = "") -> str:
        return problem_text(call, remaining)

    def arguments(self, call: InferredCall) -> dict[str, Any]:
        namespace: dict[str, Any] = {}
        exec(compile(problem_text(call), "<inferred>", "exec"), namespace)  # noqa: S102  (written here, in the sandbox)
        seed_everything(0)
        return dict(zip((a.name for a in call.arguments), namespace["get_inputs"](), strict=True))

    def attempt(self, call: InferredCall, entry: EntryCandidate, hollow: bool = False) -> _TritonRun:
        from accelopt_profiling.triton.capture.install import emulated

        with emulated(self._params.target, sample=1, hollow=hollow, loop_work=LOOP_WORK) as session:
            values, error = self.run_entry(call, "launch" if entry.kind == "kernel" else "returns")
        executions = [e for e in session.executions if not e.tuning]
        return _TritonRun(error, values, executions, self._context.kernel_path)

    def mend(
        self, call: InferredCall, entry: EntryCandidate, run: _TritonRun, reverse: bool = False
    ) -> str | None:
        from accelopt_profiling.problems.inference.repair import repair
        from accelopt_profiling.problems.inference.subjects import CallSubjects

        text, functions = self._read[entry]
        subjects = CallSubjects(call, text, use=functions[entry.function], entry=entry, values=run.values)
        subjects.reverse = reverse
        for execution in run.executions:
            if change := repair_launch(execution, subjects, self._kernels):
                return change
            if execution.error is not None and (change := repair(execution.error, subjects)):
                return change
        return repair(run.error, subjects) if run.error is not None else self._grown(call, entry, run)

    def _grown(self, call: InferredCall, entry: EntryCandidate, run: _TritonRun) -> str | None:
        """Make the first size larger that gives a kernel programs whose grid had none, or with which the call
        runs: it may take no less than a tile. None where no single size does."""
        for factor in _GROWTH if all(e.error is None for e in run.executions) else ():
            for name, size in call.sizes.items():
                larger = deepcopy(call)
                larger.sizes[name] = size * factor
                again = None if self._spent() else self.attempt(larger, entry, hollow=True)
                if again and (again.complete or (again.error is None and len(again.empty) < len(run.empty))):
                    call.sizes[name] = size * factor
                    return f"{name} is {size * factor}: {run.remaining}"
        return None

    def improve(self, call: InferredCall, entry: EntryCandidate, run: _TritonRun, changes: list[str]) -> None:
        """Send the call with its gradients, where computing them launches further kernels, and with the sizes of a
        kernel in use, as many of them as it runs with just as well."""
        if entry.kind != "kernel":
            further = deepcopy(call)
            further.backward = True
            again = self.attempt(further, entry, hollow=elements(further) > LARGE)
            if again.complete and set(again.launched) > set(run.launched):
                self.send(further, again, changes)
                call, run = further, again
        for larger in enlarged_calls(call):
            again = self.attempt(larger, entry, hollow=True)
            if again.complete and again.launched == run.launched:
                self.send(larger, again, changes)
                return


def _launched_elsewhere(
    context: StepContext, params: InferParams, module: Any, tree: ast.Module
) -> dict[EntryCandidate, tuple[str, dict[str, FunctionUse]]]:
    """Return the entries of other files that launch the kernels, with the text and the functions of their file."""
    from accelopt_profiling.triton.capture.install import emulated

    names = {k.name.split("#")[0].split(".")[0] for k in params.kernels}
    kernels: dict[str, ast.stmt] = {
        n.name: n
        for n in ast.walk(tree)
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name in names
    }
    with emulated(params.target, sample=1):
        files = list(other_launchers(module, Path(context.source.name), kernels))
    return {entry: (file.text, file.functions) for file in files for entry in file.entries}


def _imported_functions(module: Any, tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return the functions of other files that kernels can call, by the names under which this one imports them."""
    functions: dict[str, ast.FunctionDef] = {}
    for node in ast.walk(tree):
        for alias in node.names if isinstance(node, ast.ImportFrom) else []:
            name = alias.asname or alias.name
            value = getattr(module, name, None)
            if isinstance(value, JITFunction) and isinstance(
                source := ast.parse(value.src).body[0], ast.FunctionDef
            ):
                functions[name] = source
    return functions


def _where(error: BaseException, kernel_file: Path) -> str:
    """Return the innermost line that an exception passed through in the kernel file, or in another of the user's."""
    sites = failure_sites(error)
    own = [s for s in sites if os.path.realpath(s.file) == os.path.realpath(kernel_file)]
    if own:
        return f" (line {own[0].statement.lineno})"
    return f" ({Path(sites[0].file).name}, line {sites[0].statement.lineno})" if sites else ""


def repair_launch(execution: Any, subjects: CallSubjects, kernels: dict[str, ast.FunctionDef]) -> str | None:
    """Change the call by a ``LaunchExecution`` that failed or left its tensors.

    Return what was changed, or None.
    """
    launch = execution.launch
    arguments = dict(zip(launch.fn.arg_names, launch.args, strict=False))
    if execution.error is None:
        return _first_enlarged(execution.faults, arguments, subjects)
    text = f"{type(execution.error).__name__}: {execution.error}"
    kernel = kernels.get(launch.fn.fn.__name__)
    if kernel is not None and re.search(r"ptr type|pointer|NoneType|no attribute", text):
        for name in pointers(kernel):
            if (
                name in arguments
                and not isinstance(arguments[name], torch.Tensor)
                and (own := _host_name(name, subjects))
            ) and (change := subjects.make_tensor(own, f"a pointer of {kernel.name}")):
                return change
    if matched := re.search(r"[Ee]xpected dtype \[?.*'fp32'.* but got (bf16|fp16)", text):
        short = {"bf16": "bfloat16", "fp16": "float16"}[matched[1]]
        changed = [t for t in subjects.call.tensors if t.dtype == short]
        for tensor in changed:
            subjects.set_dtype(tensor, "float32", f"{launch.name} takes no {short}")
        return "float32 in place of " + short if changed else None
    if "power of 2" in text or "power of two" in text:
        for size, value in subjects.call.sizes.items():
            if value & (value - 1):
                subjects.call.sizes[size] = 1 << value.bit_length()
                return f"{size} is a power of two"
    if matched := re.search(r"(?:K|M|N) >= (\d+)", text):
        small = [n for n, size in subjects.call.sizes.items() if 1 < size < int(matched[1])]
        if small:
            return subjects.resize(
                subjects.call.sizes[small[0]], int(matched[1]), "the least that tl.dot takes"
            )
    return _first_enlarged(execution.faults, arguments, subjects)


def _first_enlarged(faults: list[Any], arguments: dict[str, Any], subjects: CallSubjects) -> str | None:
    changes = (_enlarge(arguments, fault.tensor, fault.element, subjects) for fault in faults)
    return next(filter(None, changes), None)


def _enlarge(arguments: dict[str, Any], name: str, element: int, subjects: CallSubjects) -> str | None:
    """Give the tensor that an access left the shape of the largest one of the launch; fewer elements for none."""
    argument = subjects.argument_of(arguments.get(name))
    if argument is None:
        return _lower_indices(subjects)
    own = subjects.call.shape(argument)
    larger = [
        t
        for t in subjects.call.tensors
        if t is not argument and _count(t, subjects) > _count(argument, subjects)
    ]
    fitting = [t for t in larger if _count(t, subjects) > element]
    if fitting and argument.dtype not in ("int32", "int64"):
        smallest = min(fitting, key=lambda t: _count(t, subjects))
        return subjects.set_dims(
            argument, subjects.call.shape(smallest), f"as large as {smallest.name}: it is read there"
        )
    if fitting and element < 1 << 24:
        smallest = min(fitting, key=lambda t: _count(t, subjects))
        return subjects.set_dims(
            argument, subjects.call.shape(smallest)[: max(1, len(own))], "as large as it is read"
        )
    if len(own) == 1 and element < 1 << 24:
        size = 1 << element.bit_length()
        return subjects.set_dims(argument, [size], "as large as it is read")
    return _lower_indices(subjects)


def _lower_indices(subjects: CallSubjects) -> str | None:
    """Point all indices at the first element: a larger one left a tensor."""
    for argument in subjects.call.tensors:
        if argument.fill in ("index", "full") and "1" not in argument.value:
            argument.fill, argument.value = "index", "1"
            return f"{argument.name} holds zeros"
    return None


def _count(argument: InferredArgument, subjects: CallSubjects) -> int:
    count = 1
    for size in subjects.call.shape(argument):
        count *= size
    return count


def _host_name(pointer: str, subjects: CallSubjects) -> str | None:
    """Return the parameter of the entry that has the name of a kernel's pointer, without its ending."""
    plain = pointer.lower().removesuffix("_ptr").removesuffix("_pointer").removesuffix("ptr").strip("_")
    names = {name.lower().strip("_"): name for name in subjects.parameters}
    return names.get(plain) or names.get(pointer.lower())
