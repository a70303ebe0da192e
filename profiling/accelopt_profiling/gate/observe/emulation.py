"""Emulate the device in the gate's processes: each dialect's emulator, or nothing where code is plain NumPy.

NKI kernels run on this project's emulator also where an SDK with a simulator is installed: what a candidate does can be
watched there alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Literal

from accelopt_profiling.gate.observe.device_answers import device_answers
from accelopt_profiling.gate.observe.movement import Movement
from accelopt_profiling.gate.observe.other_devices import noting_questions
from accelopt_profiling.gate.request import GateDialect
from accelopt_profiling.jobs import StepError
from accelopt_profiling.step_context import StepFailedError
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.interpreter.sampling import InterpretationPlan

#: What emulating one NKI instruction takes, in the same unit: measured once, to choose a figure.
_INSTRUCTION = 40_000


class Seen:
    """An emulation's record of the code that ran in it. This one is empty: the code ran as it is."""

    #: Whether each launch left only values that it was given; None where nobody looked.
    movement: Movement | None = None

    def raise_faults(self) -> None:
        """Raise what went wrong inside a kernel and did not reach the code that launched it."""

    def work(self) -> int | None:
        """Return what the launches took to interpret, in elements. None where that is not counted."""
        return None

    def launched(self) -> list[str] | None:
        """Return the names of the kernels in the order of their launches.

        None where launches cannot be observed.
        """
        return None

    def complete(self) -> bool:
        """Check whether every program of every launch ran."""
        return True

    def may_reorder(self) -> bool:
        """True if kernels have loops or programs that may run in any order, and may notice it."""
        return False

    def asks_device(self) -> bool:
        """True if the code asked what device it runs on."""
        return False

    def races(self) -> list[str]:
        """Return tensors of which programs of a launch read what others of them write."""
        return []

    def lanes(self) -> list[str]:
        """Return tensors of which lanes of a program read what other lanes of it write, with no barrier between."""
        return []

    def known(self, outputs: list[Any]) -> dict[int, Any]:
        """For each array of ``outputs`` (by number, lists flattened) of which only some elements are known: a mask."""
        return {}


class _NkiSeen(Seen):
    def __init__(self, emulator: Any, movement: Movement | None) -> None:
        self._emulator, self.movement = emulator, movement

    def raise_faults(self) -> None:
        for machine in self._emulator.machines:
            if machine.diagnostics.first_fault is not None:
                raise machine.diagnostics.first_fault

    def may_reorder(self) -> bool:
        return any(machine.free_loops for machine in self._emulator.machines)

    def work(self) -> int | None:
        return int(_INSTRUCTION * sum(m.stream.issued for m in self._emulator.machines))

    def launched(self) -> list[str] | None:
        return [m.trace.kernel for m in self._emulator.machines]


class TritonSeen(Seen):
    """The record of a ``session`` in which Triton kernels ran."""

    def __init__(self, session: Any, movement: Movement | None) -> None:
        self.session, self.movement, self._asked = session, movement, False

    def note_question(self) -> None:
        self._asked = True

    def asks_device(self) -> bool:
        return self._asked

    def raise_faults(self) -> None:
        from accelopt_profiling.triton.capture.session import OutOfBoundsError
        from accelopt_profiling.triton.interpreter.work import WorkExceededError

        for execution in self.session.executions:
            if isinstance(execution.error, WorkExceededError):
                raise StepFailedError(
                    StepError("not-judged", f"{execution.error}, so it was not judged.")
                ) from None
            if execution.error is not None:
                raise execution.error
            if execution.faults:
                raise OutOfBoundsError(execution.faults[0])

    def work(self) -> int | None:
        return int(self.session.work)

    def exceeds_work(self) -> bool:
        """True if interpreting a launch was ended because it took too much work."""
        from accelopt_profiling.triton.interpreter.work import WorkExceededError

        return any(isinstance(e.error, WorkExceededError) for e in self.session.executions)

    def launched(self) -> list[str] | None:
        return [launch.name for launch in self.session.launches]

    def complete(self) -> bool:
        return not self.session.coverage.sampled

    def may_reorder(self) -> bool:
        return bool(getattr(self.session.coverage, "has_atomics", False))

    def races(self) -> list[str]:
        return list(getattr(self.session.coverage, "found", []))

    def lanes(self) -> list[str]:
        return list(getattr(self.session.coverage, "lanes", []))

    def known(self, outputs: list[Any]) -> dict[int, Any]:
        from accelopt_profiling.triton.interpreter.coverage import known_elements

        return known_elements(self.session.coverage, outputs)


@contextmanager
def emulation(
    dialect: GateDialect,
    target: str | GpuTarget,
    plan: InterpretationPlan | None = None,
    movement: bool = False,
    prefers: Callable[[Any, Any], bool | None] | None = None,
    order: int | None = None,
    runs_tries: bool = False,
) -> Iterator[Seen]:
    """Make kernels of ``dialect`` run here and compute what they would on ``target``, while the context is open.

    With a ``plan`` the programs that it draws of each Triton launch are interpreted; without, all are, and what they
    raise is raised from the launch. Kernels of a module that was loaded in one such context run in another as well.
    With ``movement`` the values that launches read and leave are compared, and races between programs looked for.
    ``prefers(tuner, configuration)`` says which configuration an autotuner chooses (None: it does not compile); with
    ``runs_tries`` that one also runs while it is tried. ``order`` draws another order of the iterations of NKI's loops
    that promise to take any, and of a Triton launch's programs; its ``target`` may be another GPU than a named one.
    """
    watched = Movement() if movement else None
    if dialect == "nki" and isinstance(target, str):
        with _nki("full", target, order) as emulator:
            if watched is not None:
                _watch_machines(emulator, watched)
            yield _NkiSeen(emulator, watched)
    elif dialect == "triton":
        from accelopt_profiling.triton.capture.install import emulated as emulated_triton

        mode: Literal["capture", "execute"] = "execute" if plan is None else "capture"
        plan = plan and replace(plan, order=order)
        with (
            emulated_triton(target, mode=mode, count=False, plan=plan) as session,
            device_answers(int(session.target.get("dram_bytes", 80e9))),
        ):
            _named_like_the_real_one(session.driver)
            if prefers is not None:
                session.driver.prefers, session.driver.runs_tries = prefers, runs_tries
            if watched is not None:
                from accelopt_profiling.gate.observe.launch_coverage import RaceCoverage

                races = RaceCoverage()
                session.coverage = races
                session.driver.record = watched.around(session.driver.record, lambda: not races.sampled)
            observation = TritonSeen(session, watched)
            with noting_questions(session.driver, observation.note_question):
                yield observation
    else:
        yield Seen()


@contextmanager
def neutralised(
    dialect: GateDialect,
    target: str,
    plan: InterpretationPlan,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    marked: Callable[[Any], Any] | None = None,
    take: Callable[[Any], None] = lambda array: None,
) -> Iterator[Seen]:
    """As ``emulation``, but everything that kernels write is NaN afterwards.

    So a result that is right in spite of that came from elsewhere. Triton kernels run first, as ``plan`` says, to see
    what they write; ``around`` is entered for each launch, and ``take`` called with each array that it gets. What NKI
    kernels return is passed through ``marked``.
    """
    if dialect == "nki":
        with _nki("trace", target) as emulator:
            _empty_outputs(emulator, marked or (lambda array: array), take)
            yield _NkiSeen(emulator, None)
    elif dialect == "triton":
        from accelopt_profiling.gate.observe.launch_coverage import SpoilingCoverage
        from accelopt_profiling.triton.capture.install import emulated as emulated_triton

        with (
            emulated_triton(target, mode="capture", count=False, plan=plan) as session,
            device_answers(int(session.target.get("dram_bytes", 80e9))),
        ):
            session.coverage = SpoilingCoverage()
            record = session.driver.record

            def spoiled(*launch: Any) -> None:
                with around():
                    for value in launch[-1]:
                        if hasattr(value, "untyped_storage"):
                            take(value)
                    record(*launch)

            session.driver.record = spoiled
            yield Seen()
    else:
        yield Seen()


@contextmanager
def empty_launches(dialect: GateDialect, target: str, most: int) -> Iterator[None]:
    """As ``emulation``, but launches compute and write nothing, so that a call takes what its host code takes. A launch
    after ``most`` others raises: host code may wait for a result that never comes.
    """
    rest = iter(range(most))

    def launch(*_: Any) -> None:
        if next(rest, None) is None:
            raise RuntimeError("more launches than any call made before")

    if dialect == "nki":
        with _nki("trace", target, answers={}) as emulator:
            begin = emulator.launch

            def begun(kernel: str) -> Any:
                launch()
                return begin(kernel)

            emulator.launch = begun
            yield
    elif dialect == "triton":
        from accelopt_profiling.triton.capture.install import emulated as emulated_triton

        with (
            emulated_triton(target, mode="capture", count=False) as session,
            device_answers(int(session.target.get("dram_bytes", 80e9))),
        ):
            session.driver.record = launch
            yield
    else:
        yield


@contextmanager
def hollow_draws(target: str) -> Iterator[None]:
    """As ``emulation`` of Triton kernels, with zeros for random numbers: memory that nobody looks at costs nothing."""
    from accelopt_profiling.triton.capture.install import emulated as emulated_triton

    with emulated_triton(target, mode="capture", hollow=True, count=False):
        yield


@contextmanager
def estimated_work(target: str, most: int) -> Iterator[tuple[list[int], TritonSeen]]:
    """As ``emulation`` of Triton kernels, of which one program runs each time.

    Gives a list of what the launches would take to interpret whole, in elements, and what was seen. What they compute
    is of no use.
    """
    from accelopt_profiling.gate.observe.launch_coverage import RaceCoverage
    from accelopt_profiling.triton.capture.install import emulated as emulated_triton

    work: list[int] = []
    with emulated_triton(
        target, mode="capture", count=False, plan=InterpretationPlan(most=most),
        observe=lambda execution: work.append(execution.work),
    ) as session:  # fmt: skip
        session.coverage = RaceCoverage()
        yield work, TritonSeen(session, None)


def _nki(
    mode: Literal["full", "trace"],
    target: str,
    order: int | None = None,
    answers: dict[Any, Any] | None = None,
) -> AbstractContextManager[Any]:
    from accelopt_profiling.nki.install import emulated
    from accelopt_profiling.nki.time_model.hardware import hardware

    return emulated(
        mode, record=False, limits=hardware(target).limits, sdk=False, order=order, answers=answers
    )


def _named_like_the_real_one(driver: Any) -> None:
    """A candidate that asks what kind of driver it has gets the answer that it would get on a device."""
    hip = getattr(driver.get_current_target(), "backend", "") == "hip"
    kind = type(driver)
    kind.__name__ = kind.__qualname__ = "HIPDriver" if hip else "CudaDriver"
    kind.__module__ = f"triton.backends.{'amd' if hip else 'nvidia'}.driver"


def _watch_machines(emulator: Any, movement: Movement) -> None:
    launch = emulator.launch

    def watched(kernel: str) -> Any:
        machine = launch(kernel)
        argument, output = machine.argument, machine.output

        def took(array: Any, writable: bool = False) -> Any:
            movement.read(array)
            return argument(array, writable)

        def gave(tile: Any) -> Any:
            array = output(tile)
            movement.left(array)
            return array

        machine.argument, machine.output = took, gave
        return machine

    emulator.launch = watched


def _empty_outputs(emulator: Any, marked: Callable[[Any], Any], take: Callable[[Any], None]) -> None:
    launch = emulator.launch

    def emptied(kernel: str) -> Any:
        from accelopt_profiling.comparison.memory import poisoned

        machine = launch(kernel)
        argument, output = machine.argument, machine.output

        def took(array: Any, writable: bool = False) -> Any:
            take(array)
            return argument(array, writable)

        machine.argument = took
        machine.output = lambda tile: marked(poisoned(output(tile)))
        return machine

    emulator.launch = emptied
