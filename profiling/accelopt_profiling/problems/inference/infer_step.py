"""The step ``infer``: find inputs with which a file's kernels run, by running them in this child process.

The entries of a file are tried in turn. Each is called with guessed arguments; what its errors ask for is changed, a
bounded number of times. The best call is sent as it gets better, so that a crash or a time limit does not lose it.
Tries are small, so that they are quick; what runs is given the sizes that such kernels have in use.
"""

from __future__ import annotations

import ast
import os
import time
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import StepError
from accelopt_profiling.problems.inference.arguments import InferredCall, NoSizeError
from accelopt_profiling.problems.inference.enlarge import enlarged_calls
from accelopt_profiling.problems.inference.entries import EntryCandidate, entry_candidates
from accelopt_profiling.problems.inference.failure_site import error_text, failure_sites
from accelopt_profiling.problems.inference.guess import guess_call
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem
from accelopt_profiling.problems.inference.problem_text import problem_text
from accelopt_profiling.problems.inference.usage import FunctionUse, function_uses
from accelopt_profiling.problems.loading.call import perform, seed_everything
from accelopt_profiling.problems.problem import Call, CallStyle, ProblemError
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module

#: Runs for one entry, and for all entries of a file together.
_ATTEMPTS = 24
_ATTEMPTS_IN_ALL = 64
_ENTRIES = 8


@dataclass
class _Outcome:
    """One run: the exception of the host code, and the launches that it made."""

    error: BaseException | None
    executions: list[Any]

    @property
    def score(self) -> tuple[int, int, int]:
        good = sum(e.error is None and not e.faults for e in self.executions)
        return (int(good > 0 and self.error is None), int(good > 0), int(bool(self.executions)))

    @property
    def complete(self) -> bool:
        return self.error is None and bool(self.executions) and self._fault() is None

    @property
    def launched(self) -> list[str]:
        return sorted({e.launch.name for e in self.executions})

    def _fault(self) -> Any:
        return next((e for e in self.executions if e.error is not None or e.faults), None)

    def remaining(self, kernel_file: Path) -> str:
        """Describe in one clause what went wrong first; "" where nothing did."""
        if self.error is not None:
            return f"{error_text(self.error)}{_where(self.error, kernel_file)}"
        fault = self._fault()
        if fault is None:
            return "" if self.executions else "no kernel was launched"
        if fault.error is not None:
            return f"{fault.launch.name} raised {error_text(fault.error)}{_where(fault.error, kernel_file)}"
        from accelopt_profiling.triton.capture.session import describe

        return describe(fault.faults[0])


def infer(context: StepContext, params: InferParams) -> InferredProblem:
    """Return the best problem that was found; each better one is emitted as well.

    Raises:
        StepFailedError: the file cannot be loaded, or has nothing that could be called.
    """
    from accelopt_profiling.triton.capture.session import emulated

    with emulated(params.target, sample=1):
        module = load_module(context)
    return _Inference(context, params, module).run()


class _Inference:
    def __init__(self, context: StepContext, params: InferParams, module: Any) -> None:
        self._context, self._params, self._module = context, params, module
        self._attempts, self._until = _ATTEMPTS_IN_ALL, time.process_time() + params.cpu_seconds
        self._text = context.source.files[context.source.kernel]
        self._tree = ast.parse(self._text)
        names = [k.name.split("#")[0].split(".")[-1] for k in params.kernels]
        every = {n.name for n in ast.walk(self._tree) if isinstance(n, ast.FunctionDef) and _jitted(n)}
        self._functions = function_uses(self._tree, every | set(names))
        self._kernels = {n: f.node for n, f in self._functions.items() if f.kernel}
        self._entries = entry_candidates(self._tree, names)[:_ENTRIES]
        self._best: tuple[tuple[int, int, int], InferredProblem] | None = None

    def run(self) -> InferredProblem:
        for entry in self._entries:
            if self._try(entry) or self._spent():
                break
        if self._best is None:
            message = "No function of the file launches its kernels, so there is nothing to infer inputs for."
            raise StepFailedError(StepError("problem-invalid", message, self._context.source.kernel))
        return self._best[1]

    def _spent(self) -> bool:
        return self._attempts <= 0 or time.process_time() > self._until

    def _try(self, entry: EntryCandidate) -> bool:
        """Try one entry until it runs, nothing more can be repaired, or the time is over."""
        use = self._functions[entry.function]
        call = guess_call(self._text, entry, self._functions)
        seen: set[str] = set()
        changes: list[str] = []
        for _ in range(_ATTEMPTS):
            text = problem_text(call)
            if text in seen or self._spent():
                return False
            seen.add(text)
            values, outcome = self._attempt(call, text, entry)
            self._keep(call, outcome, changes)
            if outcome.complete:
                call, outcome = self._with_backward(call, entry, outcome, changes)
                self._enlarge(call, entry, outcome, changes)
                return True
            made = self._repair(call, use, entry, values, outcome)
            if made is None:
                return False
            changes.append(made)
            call.drop_unused_sizes()
        return False

    def _with_backward(
        self, call: InferredCall, entry: EntryCandidate, outcome: _Outcome, changes: list[str]
    ) -> tuple[InferredCall, _Outcome]:
        """Return the call with its gradients, sent, where computing them launches further kernels."""
        if entry.kind != "kernel":
            further = deepcopy(call)
            further.backward = True
            _, again = self._attempt(further, problem_text(further), entry)
            if again.complete and set(again.launched) > set(outcome.launched):
                self._send(further, again, changes)
                return further, again
        return call, outcome

    def _enlarge(
        self, call: InferredCall, entry: EntryCandidate, outcome: _Outcome, changes: list[str]
    ) -> None:
        """Send the call with the sizes of a kernel in use, as many of them as it runs with just as well."""
        launched = outcome.launched
        for larger in enlarged_calls(call):
            _, again = self._attempt(larger, problem_text(larger), entry, hollow=True)
            if again.complete and again.launched == launched:
                self._send(larger, again, changes)
                return

    def _attempt(
        self, call: InferredCall, text: str, entry: EntryCandidate, hollow: bool = False
    ) -> tuple[dict[str, Any], _Outcome]:
        from accelopt_profiling.triton.capture.session import emulated

        self._attempts -= 1
        values: dict[str, Any] = {}
        with emulated(self._params.target, sample=1, seconds=0.0, hollow=hollow) as session:
            try:
                namespace: dict[str, Any] = {}
                exec(compile(text, "<inferred>", "exec"), namespace)  # noqa: S102  (written here, in the sandbox)
                seed_everything(0)
                inputs = namespace["get_inputs"]()
                values = dict(zip((a.name for a in call.arguments), inputs, strict=True))
                style: CallStyle = "launch" if entry.kind == "kernel" else "returns"
                made = Call(call.entry, style, keywords=call.keywords, grid=call.grid, backward=call.backward)
                perform(self._module, made, inputs)
                error: BaseException | None = None
            except ProblemError as stop:
                error = None if stop.code == "problem-empty" else stop
            except BaseException as stop:  # user code: whatever it raises is what is to be repaired
                error = stop
        return values, _Outcome(error, [e for e in session.executions if not e.tuning])

    def _repair(
        self,
        call: InferredCall,
        use: FunctionUse,
        entry: EntryCandidate,
        values: dict[str, Any],
        outcome: _Outcome,
    ) -> str | None:
        from accelopt_profiling.problems.inference.kernel_repair import repair_launch
        from accelopt_profiling.problems.inference.repair import repair
        from accelopt_profiling.problems.inference.subjects import CallSubjects

        before = deepcopy(call)
        subjects = CallSubjects(call, self._text, use, entry, values)
        try:
            for execution in outcome.executions:
                if made := repair_launch(execution, subjects, self._kernels):
                    return made
                if execution.error is not None and (made := repair(execution.error, subjects)):
                    return made
            return repair(outcome.error, subjects) if outcome.error is not None else None
        except NoSizeError:
            call.__dict__.update(before.__dict__)
            return None

    def _keep(self, call: InferredCall, outcome: _Outcome, changes: list[str]) -> None:
        best = self._best  # of as good ones of an entry the last: more of it is mended
        if (
            best is None
            or best[0] < outcome.score
            or (best[0] == outcome.score and best[1].entry == call.entry)
        ):
            self._send(call, outcome, changes)

    def _send(self, call: InferredCall, outcome: _Outcome, changes: list[str]) -> None:
        remaining = "" if outcome.complete else outcome.remaining(self._context.kernel_path)
        problem = InferredProblem(
            problem_text(call, remaining),
            call.entry,
            outcome.launched,
            outcome.complete,
            remaining[:300],
            list(changes),
        )
        self._best = (outcome.score, problem)
        self._context.emit(problem)


def _where(error: BaseException, kernel_file: Path) -> str:
    """Return the innermost line that an exception passed through in the kernel file, or in another of the user's."""
    sites = failure_sites(error)
    own = [s for s in sites if os.path.realpath(s.file) == os.path.realpath(kernel_file)]
    if own:
        return f" (line {own[0].statement.lineno})"
    return f" ({Path(sites[0].file).name}, line {sites[0].statement.lineno})" if sites else ""


def _jitted(node: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(d).split("(")[0].split(".")[-1] for d in node.decorator_list)
