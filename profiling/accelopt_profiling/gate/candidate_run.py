"""The calls of a loaded candidate, and what is seen of them: each case once, then what the probes ask for."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

from accelopt_profiling.comparison.memory import arrays_of, fingerprint, overlapping, poisoned_memory
from accelopt_profiling.gate.case_files import drawn_cases
from accelopt_profiling.gate.loaded_candidate import LoadedCandidate, TooLittleKnownError
from accelopt_profiling.gate.observe.autotuning import AutotuneTurns
from accelopt_profiling.gate.observe.clock_shift import Clock, Counts
from accelopt_profiling.gate.observe.dispatch_mode import poisoned_tensors
from accelopt_profiling.gate.observe.emulation import Seen, emulation
from accelopt_profiling.gate.observe.hostwork import HostWork
from accelopt_profiling.gate.observe.kept_results import turned
from accelopt_profiling.gate.observe.own_state import OwnState
from accelopt_profiling.gate.step_schemas import RunCase, RunResult
from accelopt_profiling.step_context import StepFailedError
from accelopt_profiling.targets import GpuTarget

#: Probes that took less made no call.
_LEAST_BUSY = 1e-4
#: A call in another order may take so many times the work of one in the launch's.
_PATIENCE = 4
#: A case may take so many times its processor time by the clock: the machine may be busy.
_IDLE = 5


class CandidateRun:
    """The calls of a loaded candidate: each case once, then what the probes ask for. ``repeated`` is the case that is
    called twice and then again, ``others`` are those at sizes of the problem's own; ``kept`` are outputs of further
    calls with their fingerprints.
    """

    def __init__(self, candidate: LoadedCandidate, clock: Clock, work: HostWork) -> None:
        self.candidate, self.clock, self.work = candidate, clock, work
        self.params = candidate.params
        self.built: dict[str, Any] = {}
        self.kept: list[tuple[list[Any], list[bytes]]] = []
        self.keeps: list[str] = []
        self.late = False
        self.busy: dict[str, float] = {}
        self.cases: dict[int, RunCase] = {}
        indices = drawn_cases(candidate.context, self.params.cases)
        self.calls = {n: candidate.case_call(n) for n in indices}
        self.repeated = next((n for n in indices if self.calls[n].twice), None)
        self.others = [n for n in indices if n != self.repeated and not self.calls[n].derived]

    def first_calls(self) -> None:
        """Call each case once, and the one that is repeated twice."""
        for index in self.calls:
            started = process_time()
            result = self._case(index)
            self.cases[index] = replace(result, busy=process_time() - started)

    def result(self) -> RunResult:
        candidate = self.candidate
        return RunResult(
            list(self.cases.values()),
            sorted(set(candidate.patched)),
            threads=len(sys._current_frames()) - 1,
            processes=_processes(),
            calls=candidate.calls,
            host_work=self.work.total,
            moved_only=candidate.moved_only,
            late=self.late,
            attributes=sorted(set(candidate.attributes)),
            races=candidate.races,
            lanes=candidate.lanes,
            tried=candidate.configurations.tried(),
            untried=candidate.configurations.left(),
            refused=candidate.configurations.refused(),
            keeps=self.keeps,
            changed=sorted(candidate.caller.changed),
            returns_one=candidate.returns_one,
            busy={name: seconds for name, seconds in self.busy.items() if seconds > _LEAST_BUSY},
        )

    def _case(self, index: int) -> RunCase:
        candidate = self.candidate
        candidate.context.emit({"running": index})
        self.allow()
        candidate.configurations.next_case(index)
        case_call = self.calls[index]
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

    def allow(self) -> None:
        """Let the next call, or the next ones together, take the time of a case."""
        allow(self.params.case_seconds)

    @contextlib.contextmanager
    def calling(self, index: int, order: int | None = None, runs_tries: bool = False) -> Iterator[Seen]:
        """Emulate a case's launches, with memory poisoned, while the block makes a call. In another ``order`` it may
        take some times the work of the case's first call: programs may wait for those that come later.
        """
        most = None if order is None else _PATIENCE * (self.cases[index].work or 0)
        with (
            self.candidate.emulated(index, order=order, runs_tries=runs_tries, most=most) as observation,
            poisoned_memory(),
            poisoned_tensors(),
        ):
            yield observation

    @contextlib.contextmanager
    def elsewhere(self, index: int, device: GpuTarget) -> Iterator[Seen]:
        """Emulate a case's launches on another ``device``, by the file loaded there, while the block makes a call."""
        plan = replace(self.candidate.interpretation(index), shares={})
        turns = AutotuneTurns()
        with (
            emulation(self.params.dialect, device, plan, prefers=turns.prefers) as observation,
            poisoned_memory(),
            poisoned_tensors(),
            self.candidate.loaded_anew(),
        ):
            yield observation

    @property
    def alike(self) -> int | None:
        """The first case of the repeated one's shapes that holds other values, and was answered."""
        if (
            self.repeated is None or self.calls[self.repeated].call.style == "model"
        ):  # another case has other weights
            return self.repeated
        answered = (n for n in self.others if self.calls[n].altered and not self.cases[n].raised)
        return next(answered, self.repeated)

    def watch_own_state(self) -> None:
        """Take what the candidate's own code holds from here on as what it keeps."""
        root = str((self.candidate.context.folder / "src").resolve())
        self.own = OwnState(root, list(self.built.values()))
        self.counts = Counts(self.own)

    def bits(self, index: int, new: bool = False) -> tuple[list[bytes], int]:
        """Return fingerprints of what a call on a case's data returns, or on ``new`` data of its shapes and values, and
        the number of its elements.
        """
        self.allow()
        with self.calling(index) as observation:
            arguments = self.candidate.arguments(index)
            outputs = self.candidate.perform(
                index, turned(arguments) if new else arguments, observation, self.built
            )
            elements = sum(math.prod(a.shape) for _, a in arrays_of(outputs))
            return [fingerprint(o) for o in outputs], elements


#: What ends the process when a timer is over; no code of ours is run for that, which the candidate could reach.
_TIMERS = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}


def allow(seconds: float) -> None:
    """Let the system end this process after ``seconds`` of processor time, which other programs on the machine do not
    shorten, or ``_IDLE`` times as long by the clock, unless it is called again. (The whole step has a limit too, which
    a candidate that undoes this one still meets.)
    """
    for number, timer in _TIMERS.items():
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, seconds if number == signal.SIGPROF else _IDLE * seconds)


def stop_timers() -> None:
    for timer in _TIMERS.values():
        signal.setitimer(timer, 0)


def _processes() -> int:
    """Count the living child processes of this one (Linux; 0 elsewhere)."""
    try:
        return sum(
            len((task / "children").read_text().split())
            for task in Path(f"/proc/{os.getpid()}/task").iterdir()
        )
    except OSError:
        return 0
