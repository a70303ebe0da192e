"""Run guessed calls of a file's entries, and change what their errors ask for, until one runs.

The entries are tried in turn, each a bounded number of times. The best call is sent as it gets better, so that a crash
or a time limit does not lose it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from accelopt_profiling.jobs import StepError
from accelopt_profiling.problems.call import perform
from accelopt_profiling.problems.inference.arguments import InferredCall, NoSizeError
from accelopt_profiling.problems.inference.entries import EntryCandidate
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem
from accelopt_profiling.problems.inference.own_faults import own_fault_line
from accelopt_profiling.problems.problem import Call, CallStyle, ProblemError
from accelopt_profiling.step_context import StepContext, StepFailedError


@dataclass
class InferenceRun(ABC):
    """One run of a call: the exception that ended its host code, and the arguments that it was given, by name."""

    error: BaseException | None
    values: dict[str, Any]

    @property
    @abstractmethod
    def launched(self) -> list[str]:
        """The names of the kernels that it launched, sorted."""

    @property
    @abstractmethod
    def remaining(self) -> str:
        """What went wrong first, in one clause; "" where nothing did."""

    @property
    @abstractmethod
    def score(self) -> tuple[bool, bool, bool]:
        """How far it came; the greater one is the better one."""

    @property
    def progress(self) -> tuple[int, ...]:
        """How far it came in the code, where that is known. The greater one came further."""
        return ()

    @property
    def failure(self) -> BaseException | None:
        """What the host code or a kernel raised first."""
        return self.error

    @property
    def complete(self) -> bool:
        return self.error is None and not self.remaining


#: Repairs in a row that bring a call no further: then others are tried.
_STALLED = 8

RunT = TypeVar("RunT", bound=InferenceRun)


class RepairLoop(ABC, Generic[RunT]):
    """Tries the entries of one file. A dialect says how a call is written, run and repaired."""

    #: Runs for one entry, and for all entries of a file together.
    attempts: ClassVar[int]
    attempts_in_all: ClassVar[int]

    def __init__(
        self, context: StepContext, params: InferParams, module: Any, entries: list[EntryCandidate]
    ) -> None:
        self._context, self._params, self._module, self._entries = context, params, module, entries
        self._text = context.source.files[context.source.kernel]
        self._left, self._until = self.attempts_in_all, time.process_time() + params.cpu_seconds
        self._best: tuple[tuple[bool, bool, bool], InferredProblem] | None = None

    def run(self) -> InferredProblem:
        """Return the best problem.

        Raises:
            StepFailedError: the file has nothing that could be called.
        """
        for entry in self._entries:
            if self._try(entry) or self._spent():
                break
        if self._best is None:
            message = (
                "The time for inferring inputs was over before a call of its functions ended."
                if self._entries
                else "No function of the file launches its kernels, so there is nothing to infer inputs for."
            )
            raise StepFailedError(StepError("problem-invalid", message, self._context.source.kernel))
        return self._best[1]

    @abstractmethod
    def first_call(self, entry: EntryCandidate) -> InferredCall:
        """Guess the call of an entry from the text of the file."""

    @abstractmethod
    def written(self, call: InferredCall, remaining: str = "") -> str:
        """Return the problem file of a call."""

    @abstractmethod
    def attempt(self, call: InferredCall, entry: EntryCandidate) -> RunT:
        """Run a call once, by ``run_entry``."""

    @abstractmethod
    def arguments(self, call: InferredCall) -> dict[str, Any]:
        """Make the arguments of a call, by name."""

    @abstractmethod
    def mend(self, call: InferredCall, entry: EntryCandidate, run: RunT, reverse: bool = False) -> str | None:
        """Change the call by what the run's errors ask for.

        Return what was changed, or None for nothing. With ``reverse`` what shall be equal gets the value of its other
        side.

        Raises:
            NoSizeError: the change left a tensor without a size; the call is then put back.
        """

    def runs_otherwise(self, run: RunT) -> bool:
        """Tell whether the next run of the same call differs: it is then run once more instead of changed."""
        return False

    def alternatives(
        self, call: InferredCall, entry: EntryCandidate, run: RunT
    ) -> Iterator[tuple[str, InferredCall]]:
        """Yield calls near one that failed and that no repair is known for, each with what it changes."""
        yield from ()

    def passes(self, failed: RunT, other: RunT) -> bool:
        """Tell whether another run did what one failed at, and did not only go around it."""
        return True

    def improve(self, call: InferredCall, entry: EntryCandidate, run: RunT, changes: list[str]) -> None:
        """Send better calls than one that runs completely."""

    def acceptable(self, call: InferredCall) -> bool:
        """Tell whether a call may take the place of another."""
        return True

    def _spent(self) -> bool:
        return self._left <= 0 or time.process_time() > self._until

    def _try(self, entry: EntryCandidate) -> bool:
        """Try one entry until it runs, nothing more can be repaired, or the time is over."""
        call = self.first_call(entry)
        attempts: set[str] = set()
        changes: list[str] = []
        furthest: tuple[InferredCall, RunT] | None = None  # the first call that came as far as any
        stalled = 0
        for _ in range(self.attempts):
            if self._spent():
                return False
            attempts.add(self.written(call))
            run = self.attempt(call, entry)
            self._keep(call, run, changes)
            if self.runs_otherwise(run):
                attempts.clear()
                continue
            if run.complete:
                self.improve(call, entry, run, changes)
                return True
            tried = deepcopy(call), run
            stalled += 1
            if furthest is None or run.progress > furthest[1].progress:
                furthest, stalled = tried, 0
            change = self._repair(call, entry, run, attempts) if stalled <= _STALLED else None
            if change is None or self.written(call) in attempts:
                starts = [furthest] if stalled > _STALLED or furthest[1] is run else [tried, furthest]
                advance = next(
                    (f for s in starts if (f := self._explore(s, entry, attempts, furthest[1].progress))),
                    None,
                )
                if advance is None:
                    return False
                change, call = advance
                stalled = 0
            changes.append(change)
        return False

    def _explore(
        self,
        start: tuple[InferredCall, RunT],
        entry: EntryCandidate,
        attempts: set[str],
        beyond: tuple[int, ...],
    ) -> tuple[str, InferredCall] | None:
        """Return the first call near one that failed that comes further than ``beyond``, and what it changes; None
        where none does, or where nothing says which calls are near."""
        for change, other in self.alternatives(start[0], entry, start[1]):
            text = self.written(other)
            if text in attempts or not self.acceptable(other):
                continue
            if self._spent():
                return None
            attempts.add(text)
            run = self.attempt(other, entry)
            if run.progress == beyond and str(run.error) != str(
                start[1].error
            ):  # it now asks for something else
                mended = self._repair(other, entry, run, attempts)
                if mended is not None and self.written(other) not in attempts and not self._spent():
                    attempts.add(self.written(other))
                    change, run = f"{change}; {mended}", self.attempt(other, entry)
            if run.progress > beyond and self.passes(start[1], run):
                return change, other
        return None

    def run_entry(self, call: InferredCall, style: CallStyle) -> tuple[dict[str, Any], BaseException | None]:
        """Call the entry as its problem would, and count it.

        Return the arguments, and what ended the call: user code may raise anything, which is what is to be repaired.
        """
        self._left -= 1
        values: dict[str, Any] = {}
        entry_call = Call(
            call.entry,
            style,
            keywords=call.keywords,
            grid=call.grid,
            on_chip=call.on_chip,
            backward=call.backward,
        )
        try:
            values = self.arguments(call)
            perform(self._module, entry_call, list(values.values()))
        except ProblemError as stop:
            return values, None if stop.code == "problem-empty" else stop
        except BaseException as stop:
            return values, stop
        return values, None

    def _repair(self, call: InferredCall, entry: EntryCandidate, run: RunT, attempts: set[str]) -> str | None:
        """Change the call to one that was not tried: where two sizes take turns, both get the other one."""
        before = deepcopy(call)
        change: str | None = None
        for reverse in (False, True):
            call.__dict__.update(deepcopy(before).__dict__)
            try:
                change = self.mend(call, entry, run, reverse)
            except NoSizeError:
                call.__dict__.update(before.__dict__)
                return None
            if change is None:
                return None
            call.drop_unused_sizes()
            if self.written(call) not in attempts:
                break
        return change

    def _keep(self, call: InferredCall, run: RunT, changes: list[str]) -> None:
        """Send a call that is better than the best.

        Of as good ones of an entry the last is: more of it is mended.
        """
        if self._best is not None:
            score, problem = self._best
            other = score == run.score and problem.entry != call.entry
            if score > run.score or other or not self.acceptable(call):
                return
        self.send(call, run, changes)

    def send(self, call: InferredCall, run: RunT, changes: list[str]) -> None:
        """Make a call the best one, and send it."""
        line = own_fault_line(run.failure, str(self._context.kernel_path), self._text)
        text = self.written(call, run.remaining)
        if line:
            text = text.replace(
                "# Still to be mended", f"# Line {line} of the kernel file fails whatever the inputs are", 1
            )
        problem = InferredProblem(
            text,
            call.entry,
            launched=run.launched,
            complete=run.complete,
            remaining=run.remaining[:300],
            changes=changes[:],
            note=call.note,
            fault_line=line,
        )
        self._best = (run.score, problem)
        self._context.emit(problem)
