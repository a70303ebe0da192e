"""The step ``gate.run``: run the candidate on the drawn inputs. Its process has no seed, no reference and no expected
value.

Nothing that this process says is trusted: outputs are judged from files whose digests were sent when they were
written, and an operation that a candidate may not do ends the process at once (see ``observe.watch``).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import (
    arrays_of,
    byte_count,
    fingerprint,
    overlapping,
    poison_allocator,
    poisoned_memory,
)
from accelopt_profiling.gate.observe.clock_shift import Clock, Counts
from accelopt_profiling.gate.observe.dispatch_mode import poisoned_tensors
from accelopt_profiling.gate.observe.emulation import Seen, emulation, neutralised
from accelopt_profiling.gate.observe.hostwork import HostWork
from accelopt_profiling.gate.observe.kept_results import KeptResults, turned
from accelopt_profiling.gate.observe.own_state import OwnState
from accelopt_profiling.gate.observe.patch_detection import SharedObjects
from accelopt_profiling.gate.observe.provenance import Provenance
from accelopt_profiling.gate.observe.watch import Watch
from accelopt_profiling.gate.step_schemas import LATER, PlanResult, RunCase, RunParams, RunResult
from accelopt_profiling.gate.steps.case_files import (
    CONFIGURATION,
    PLAN_FILE,
    drawn_cases,
    forget_requests,
    own_check_of,
)
from accelopt_profiling.gate.steps.loaded_candidate import LoadedCandidate, TooLittleKnownError
from accelopt_profiling.plain import from_plain
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module

#: Outputs of further calls are kept to see whether any two share memory, up to this size together.
_KEPT_BYTES = 64 << 20
#: So many further calls are made in any case: fewer do not show what counts calls.
_LOOKS = 3
#: Further configurations of autotuners run on changed values until so many runs were made.
_CONFIGURATIONS = 40
#: A case may take so many times its processor time by the clock: the machine may be busy.
_IDLE = 5


def run(context: StepContext, params: RunParams) -> RunResult:
    """Load the candidate, call it once per case with poisoned fresh outputs, and save what it returns."""
    forget_requests(context)
    for name in set(params.hidden) - set(sys.modules) - set(sys.stdlib_module_names):
        sys.modules[name] = None  # type: ignore[assignment]  # importing it now raises ModuleNotFoundError
    with emulation(params.dialect, params.target), poisoned_memory():
        pass  # imports what it needs: the candidate shall be the only one to import from here on
    plan, own_check = _plan(context), own_check_of(context, params.cases)
    poison_allocator()
    clock, work = Clock(), HostWork(str((context.folder / "src").resolve()) + os.sep)
    Watch(
        context.folder,
        lambda code, message: context.emit({"violation": {"code": code, "message": message}}),
        params.unchanged,
        params.uses_files,
    ).start()
    _allow(params.case_seconds)
    with emulation(params.dialect, params.target):
        before = SharedObjects()
        candidate = LoadedCandidate(context, params, load_module(context, own_check=own_check), plan)
        candidate.patched += before.changes()
    for name in params.neutralised:
        if hasattr(candidate.module, name):
            setattr(candidate.module, name, _refuse(name))
    result = _CandidateRun(candidate, clock, work).all()
    for timer in _TIMERS.values():
        signal.setitimer(timer, 0)
    return result


class _CandidateRun:
    def __init__(self, candidate: LoadedCandidate, clock: Clock, work: HostWork) -> None:
        self.candidate, self.clock, self.work = candidate, clock, work
        self.params = candidate.params
        self.built: dict[str, Any] = {}
        self.kept: list[tuple[list[Any], list[bytes]]] = []
        self.keeps: list[str] = []
        self.provenance = Provenance()
        self.elements = 0

    def all(self) -> RunResult:
        candidate = self.candidate
        indices = drawn_cases(candidate.context, self.params.cases)
        cases = {n: self._case(n) for n in indices}
        case_call = {n: candidate.case_call(n) for n in indices}
        repeated = next((n for n in indices if case_call[n].twice), None)
        others = [n for n in indices if n != repeated and not case_call[n].derived]
        if repeated is not None:
            cases[repeated] = self._repeat(cases[repeated])
            after = [n for n in others if n > repeated] or others
            if case_call[repeated].call.style == "model":  # another case has other weights
                after = [repeated]
            for n in after[:1]:
                cases[n] = self._later(cases[n])
            if candidate.free_loops:
                self._reordered(repeated)
        answered = [n for n in others if not cases[n].raised]
        self._configurations(
            [n for n in answered if not case_call[n].altered], [n for n in answered if case_call[n].altered]
        )
        late = any([fingerprint(o) for o in outputs] != prints for outputs, prints in self.kept)
        self.kept.clear()
        if repeated is not None:
            self._without_what_it_kept(repeated)
        small = [n for n in others if n][:1]
        alike = [n for n in others if case_call[n].altered][:1]  # of the repeated case's shapes
        for n in dict.fromkeys(
            [*(small if small != alike else ()), *([] if repeated is None else [repeated]), *alike]
        ):
            self._without_kernels(n)
        unseen = max(self.provenance.computed(), candidate.made_elsewhere)
        if unseen > 2 * self.work.largest:  # no operation that was counted can have made these
            self.work.add("what left its arrays", unseen)
        return RunResult(
            list(cases.values()), sorted(set(candidate.patched)), len(sys._current_frames()) - 1, _processes(),
            candidate.calls, self.work.total, candidate.moved_only, late, sorted(set(candidate.attributes)),
            candidate.races, candidate.lanes, candidate.configurations.tried(), candidate.configurations.left(),
            candidate.configurations.refused(), self.keeps, sorted(candidate.caller.changed), candidate.returns_one,
        )  # fmt: skip

    def _case(self, index: int) -> RunCase:
        candidate = self.candidate
        candidate.context.emit({"running": index})
        _allow(self.params.case_seconds)
        candidate.configurations.next_case(index)
        case_call = candidate.case_call(index)
        arguments = candidate.reused_memory(candidate.arguments(index))
        built: dict[str, Any] = {}
        try:
            outputs, result = self._first_answer(index, arguments, built)
        except StepFailedError as failed:
            own = case_call.derived or case_call.altered
            tells_nothing = failed.error.code == "not-judged" and case_call.derived
            if not tells_nothing and (not own or failed.error.code not in ("user-error", "wrong-output")):
                raise
            silent = not getattr(failed.__cause__, "device_raises", True)
            return RunCase(
                index, 0.0, raised=failed.error.message[:300], silent=silent, unjudged=tells_nothing
            )
        if case_call.twice:
            self.built = built
            again, second = candidate.call(index, candidate.arguments(index), "again", built)
            result = replace(
                result,
                inputs_changed=sorted({*result.inputs_changed, *second.inputs_changed}),
                aliases=result.aliases or second.aliases,
                reused=bool(overlapping(outputs, again)),
                again=second.launched,
            )
            self.kept += [(held, [fingerprint(o) for o in held]) for held in (outputs, again)]
        return result

    def _first_answer(
        self, index: int, arguments: list[Any], built: dict[str, Any]
    ) -> tuple[list[Any], RunCase]:
        """Make the first call of a case: again in another configuration where one fails its own assertion, and whole
        where a sample of its programs tells too little.
        """
        candidate = self.candidate
        while True:
            try:
                return candidate.call(index, arguments, "outputs", built)
            except TooLittleKnownError:
                candidate.interpret_whole(index)
            except StepFailedError as failed:
                if not candidate.configurations.refuse(failed):
                    raise
                built.clear()
                candidate.configurations.next_case(index)
            arguments = candidate.reused_memory(candidate.arguments(index))

    def _repeat(self, result: RunCase) -> RunCase:
        """Make further calls on data seen before; the last one's outputs are judged as well."""
        candidate, params, index = self.candidate, self.params, result.index
        _allow(self.params.case_seconds)
        candidate.configurations.repeat_case(index)
        repeats = params.repeats
        if result.work is not None:
            repeats = min(repeats, max(_LOOKS, params.repeat_work // max(1, result.work)))
        reused = result.reused
        self.own = OwnState(str((candidate.context.folder / "src").resolve()), list(self.built.values()))
        self.counts = Counts(self.own)
        for number in range(repeats):
            arguments = candidate.arguments(index)
            with candidate.emulated(index) as seen, poisoned_memory(), poisoned_tensors():
                outputs = candidate.perform(index, arguments, seen, self.built)
                if number < _LOOKS:
                    self.counts.look()
                reused = reused or any(overlapping(held, outputs) for held, _ in self.kept)
                if sum(byte_count(held) for held, _ in self.kept) < _KEPT_BYTES:
                    self.kept.append((outputs, [fingerprint(o) for o in outputs]))
                if number + 1 == repeats:
                    candidate.save(index, "late", outputs, seen)
        return replace(result, reused=reused)

    def _later(self, result: RunCase) -> RunCase:
        """Call with another case's data under the circumstances of ``LATER``. What it raises tells nothing: numbers
        that were moved on may have meant something else than a count.
        """
        candidate, index = self.candidate, result.index
        launched: dict[str, list[str]] = {}
        arguments: list[Any] = []
        for name in LATER:
            _allow(self.params.case_seconds)
            if name == "week":
                self.clock.advance()
            elif name == "often":
                candidate.call_often(index, arguments, self.built, most=1 + len(result.launched or ()))
            elif name == "calls":
                self.counts.advance()
            arguments = candidate.arguments(index)
            with (
                contextlib.suppress(StepFailedError),
                candidate.emulated(index) as seen,
                poisoned_memory(),
                poisoned_tensors(),
            ):
                switched = name == "gradients"
                outputs = candidate.perform(index, arguments, seen, self.built, switched)
                candidate.save(index, name, outputs, seen)
                names = seen.launched()
                if names is not None:
                    launched[name] = names
        return replace(result, later=launched)

    def _without_what_it_kept(self, index: int) -> None:
        """Call on data seen before and on new data, overwrite what the candidate kept of that, and call again: the bits
        have to be the same. What it raises tells nothing: nobody promised that it takes such data.
        """
        results = KeptResults(self.own)
        with contextlib.suppress(StepFailedError):
            for _ in range(2):
                old = self._bits(index)
                results.look()
            new = self._bits(index, new=True)
            for least in (
                self.elements // 2,
                0,
            ):  # results without the keys that they are found by, then everything
                kept = results.overwrite(least)
                if kept and (self._bits(index, new=True) != new or self._bits(index) != old):
                    self.keeps = kept
                    break

    def _bits(self, index: int, new: bool = False) -> list[bytes]:
        """Fingerprints of what a call on a case's data returns, or on ``new`` data of its shapes and values."""
        candidate = self.candidate
        _allow(self.params.case_seconds)
        with candidate.emulated(index) as seen, poisoned_memory(), poisoned_tensors():
            arguments = candidate.arguments(index)
            outputs = candidate.perform(index, turned(arguments) if new else arguments, seen, self.built)
            self.elements = sum(math.prod(a.shape) for _, a in arrays_of(outputs))
            return [fingerprint(o) for o in outputs]

    def _configurations(self, plain: list[int], changed: list[int]) -> None:
        """Run what is left of the configurations that autotuners may choose, on the smallest of the ``plain`` cases
        that tries them; then all of them on the cases whose values were ``changed``, until enough runs were made.
        """
        candidate, configurations = self.candidate, self.candidate.configurations
        numbers = itertools.count()
        sizes = {n: byte_count(candidate.arguments(n)) for n in (plain if configurations.left() else [])}
        for index in sorted(sizes, key=lambda n: sizes[n]):
            while left := configurations.left():
                self._configuration(index, next(numbers))
                if configurations.left() == left:
                    break  # this case does not get to them
        for index in changed:
            while left_here := configurations.left_in(index):
                number = next(numbers)
                if number >= _CONFIGURATIONS:
                    return
                self._configuration(index, number)
                if configurations.left_in(index) == left_here:
                    break

    def _configuration(self, index: int, number: int) -> None:
        """Run a case in the next configuration; the first time it also runs while it is tried, as on a device: a kernel
        that adds to its output has to reset it.
        """
        candidate, configurations = self.candidate, self.candidate.configurations
        _allow(self.params.case_seconds)
        configurations.next_case(index)
        arguments, first = candidate.arguments(index), not number
        try:
            with candidate.emulated(index, runs_tries=first) as seen, poisoned_memory(), poisoned_tensors():
                outputs = candidate.perform(index, arguments, seen)
                about = configurations.describe() + (", after a run that times it" if first else "")
                candidate.save(index, f"{CONFIGURATION} {number}", outputs, seen, about)
                configurations.chosen()
        except StepFailedError as failed:
            if configurations.refuse(failed):
                return
            message = f"In the configuration {configurations.describe()}: {failed.error.message}"
            raise StepFailedError(replace(failed.error, message=message)) from failed

    def _reordered(self, index: int) -> None:
        """Call once with the iterations of loops that promise to take any order in another one."""
        candidate = self.candidate
        _allow(self.params.case_seconds)
        arguments = candidate.arguments(index)
        with (
            candidate.emulated(index, order=self.params.loop_order) as seen,
            poisoned_memory(),
            poisoned_tensors(),
        ):
            outputs = candidate.perform(index, arguments, seen, self.built)
            candidate.save(index, "reordered", outputs, seen)

    def _without_kernels(self, index: int) -> None:
        """Call once while everything that kernels write is poisoned. An exception is no fault: it needs its kernels."""
        candidate, params = self.candidate, self.params
        if params.dialect == "numpy":
            return
        _allow(self.params.case_seconds)
        arguments, plan = candidate.arguments(index), candidate.interpretation(index)
        outputs: list[Any] | None = None
        provenance = self.provenance
        built: dict[str, Any] = {}
        for given, mark in ((self.work.marked(arguments), self.work.marked), (arguments, None)):
            self.work.marking = mark is not None
            provenance.begin()
            with (
                neutralised(
                    params.dialect, params.target, plan, self.work.pausing, mark, provenance.launch
                ) as seen,
                poisoned_memory(),
                poisoned_tensors(),
                self.work.counting(),
            ):
                try:
                    outputs = candidate.perform(index, given, seen, built)
                    break
                except StepFailedError:
                    continue
        if candidate.case_call(index).call.style in ("returns", "launch", "destination", "model"):
            provenance.give([arguments, list(getattr(built.get("model"), "state_dict", dict)().values())])
        if outputs is not None:
            with contextlib.suppress(StepFailedError), emulation(params.dialect, params.target):
                candidate.save(index, "idle", _unmarked(outputs), Seen())


def _plan(context: StepContext) -> PlanResult | None:
    """Read how much of each case is interpreted, and remove it: the candidate is not to know. None where there is no
    original to ask.
    """
    file = context.folder / "gate" / PLAN_FILE
    if not file.is_file():
        return None
    plan = from_plain(PlanResult, json.loads(file.read_text(encoding="utf-8")))
    file.unlink()
    return plan


#: What ends the process when a timer is over; no code of ours is run for that, which the candidate could reach.
_TIMERS = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}


def _allow(seconds: float) -> None:
    """Let the system end this process after ``seconds`` of processor time, which other programs on the machine do not
    shorten, or ``_IDLE`` times as long by the clock, unless it is called again. (The whole step has a limit too, which
    a candidate that undoes this one still meets.)
    """
    for number, timer in _TIMERS.items():
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, seconds if number == signal.SIGPROF else _IDLE * seconds)


def _unmarked(values: Any) -> Any:
    if type(values) in (list, tuple):
        return type(values)(_unmarked(v) for v in values)
    return values.view(np.ndarray) if isinstance(values, np.ndarray) else values


def _processes() -> int:
    """Count the living child processes of this one (Linux; 0 elsewhere)."""
    try:
        return sum(
            len((task / "children").read_text().split())
            for task in Path(f"/proc/{os.getpid()}/task").iterdir()
        )
    except OSError:
        return 0


def _refuse(name: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise RuntimeError(
            f"the kernel called the problem's own `{name}`; a candidate has to compute the result itself"
        )

    return refused
