"""Keep the kernel launches that the user's own code makes, and interpret each of them, or a sample of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch

from accelopt_profiling.ran import LineRecord
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.interpreter.batches import LANES
from accelopt_profiling.triton.interpreter.compiler_hints import StaticAssertionError
from accelopt_profiling.triton.interpreter.counting import LaunchCounts, OperationCounter
from accelopt_profiling.triton.interpreter.coverage import SampleCoverage
from accelopt_profiling.triton.interpreter.footprint import Footprint, FootprintFinder
from accelopt_profiling.triton.interpreter.interpret import Interpreter
from accelopt_profiling.triton.interpreter.loops import LoopLimit
from accelopt_profiling.triton.interpreter.memory_bounds import LaunchMemory, OutOfBounds, regions_of
from accelopt_profiling.triton.interpreter.sampling import (
    InterpretationPlan,
    ProgramDraw,
    ProgramId,
    sample_programs,
)
from accelopt_profiling.triton.interpreter.work import WorkMeter
from accelopt_profiling.triton.launch import CapturedLaunch
from accelopt_profiling.triton_adapter.runtime import defined_at

Mode = Literal["capture", "execute"]

_interpreter: Interpreter | None = None
_footprint_finder: FootprintFinder | None = None


def interpreter() -> Interpreter:
    """Return the process's interpreter, which is kept because building its patches takes a while."""
    global _interpreter
    if _interpreter is None:
        _interpreter = Interpreter()
    return _interpreter


def footprint_finder() -> FootprintFinder:
    """Return the process's finder of footprints, which keeps what it found."""
    global _footprint_finder
    if _footprint_finder is None:
        _footprint_finder = FootprintFinder()
    return _footprint_finder


@dataclass
class LaunchExecution:
    """The outcome of one launch.

    ``counts`` is None where it was not counted; ``tuning`` marks the autotuner's tries.

    ``error`` is what the kernel raised or could not do here; ``program_bytes`` are useful bytes per counted program;
    ``work`` is what interpreting all programs takes, in elements (see ``work``), where that was to be seen. ``ran`` is
    what of the kernel's file ran.
    """

    launch: CapturedLaunch
    counts: LaunchCounts | None = None
    line_tensors: dict[int, set[str]] = field(default_factory=dict)
    program_bytes: list[int] = field(default_factory=list)
    faults: list[OutOfBounds] = field(default_factory=list)
    error: BaseException | None = None
    complete: bool = False
    tuning: bool = False
    work: int = 0
    ran: LineRecord = field(default_factory=LineRecord)


@dataclass
class CaptureSession:
    """A target being emulated in this process. ``launches`` in the order the user's code made them."""

    target: GpuTarget
    mode: Mode
    sample: int | None
    whole_work: int
    count: bool
    hollow: bool
    loop_work: int | None = None
    driver: Any = None
    device: Any = None
    executions: list[LaunchExecution] = field(default_factory=list)
    coverage: SampleCoverage = field(default_factory=SampleCoverage)
    observe: Callable[[LaunchExecution], None] | None = None
    plan: InterpretationPlan | None = None
    tuners: dict[int, Any] = field(default_factory=dict)
    uncomputed: bool = False  # something large was left uncomputed, so that zeros may stand for anything
    #: Elements that each comparison of the user's code compared, of how many.
    own_checks: list[tuple[int, int]] = field(default_factory=list)
    own_failure: bool = False  # one of its comparisons failed by elements that are known

    @property
    def work(self) -> int:
        """What has been taken to interpret so far, in elements."""
        return interpreter().builder.meter.spent

    @property
    def launches(self) -> list[CapturedLaunch]:
        """The launches of the user's code, without the autotuner's tries."""
        return [e.launch for e in self.executions if not e.tuning]

    def skip(self) -> None:
        """Note that something large is not computed."""
        self.uncomputed = self.coverage.sampled = True

    def forget_choices(self) -> None:
        """Let autotuners try their configurations anew, at other sizes or in another session that sees the module."""
        for tuner in self.tuners.values():
            tuner.cache.clear()

    @property
    def launched(self) -> int:
        """How many launches there were, the autotuner's tries among them."""
        return len(self.executions)

    def cost_only(self, run: Callable[[], Any]) -> None:
        """Run something hollowly and keep the launches that were counted.

        Nothing where no cost is asked for. What it raises, and what a launch does wrong on zeros, tells nothing.
        """
        if self.mode == "execute" or self.plan is not None:
            return
        self.forget_choices()
        before, hollow = len(self.executions), self.hollow
        self.hollow = self.device.hollow = True
        try:
            with suppress(Exception):
                run()
        finally:
            self.hollow = self.device.hollow = hollow
        executions = self.executions[before:]
        if any(e.error is not None or e.faults for e in executions):
            executions = []
        self.executions[before:] = executions

    def record(
        self, fn: Any, source: Any, metadata: Any, grid: tuple[int, int, int], args: Sequence[Any]
    ) -> None:
        """Take one launch from the driver: interpret it, or a sample of it."""
        execution = LaunchExecution(
            captured_launch(fn, source, metadata=metadata, grid=grid, args=args),
            tuning=self.driver.tuning > 0,
        )
        self.executions.append(execution)
        if not execution.tuning or self.driver.running_try:
            interpreter().recorder.clear()
            try:
                self._interpret(execution)
            except Exception as error:
                if self.mode == "execute":
                    raise
                if isinstance(error, StaticAssertionError):
                    error.kernel = execution.launch.fn.fn
                execution.error = error
                self.coverage.end_launch(complete=False)
            execution.ran = interpreter().recorder.taken(execution.launch.file)
            if self.mode == "execute":  # a long run must not keep all its tensors alive
                execution.launch = replace(execution.launch, args=())
            if self.observe is not None:
                self.observe(execution)

    def _interpret(self, execution: LaunchExecution) -> None:
        launch = execution.launch
        regions = regions_of(dict(zip(launch.fn.arg_names, launch.args, strict=False)))
        pointed_to = {f"pointer {i}": t for i, t in enumerate(self.device.raw_pointers.values())}
        memory = LaunchMemory(regions, regions_of(pointed_to))
        if self.mode == "execute":
            everything = sample_programs(launch.grid, None)
            interpreter().run(launch, everything.counted, memory=memory)
            execution.complete = True
            self._take_faults(execution, memory)
            return
        if self.plan is not None:
            if self.plan.draw is None:
                self._estimate_work(execution, memory)
            else:
                self._run_planned(execution, self.plan, self.plan.draw, memory)
            return
        sample = sample_programs(launch.grid, self.sample)
        counter = OperationCounter(launch.file, sample.programs, regions) if self.count else None
        coverage = None if self.hollow else self.coverage
        if coverage is not None:
            coverage.begin_launch()
        before = self.work
        loops = self._loop_limit()
        try:
            interpreter().run(
                launch, sample.counted, counter=counter, coverage=coverage, memory=memory, loops=loops
            )
            each = (self.work - before) / max(1, len(sample.counted))
            if counter is not None:
                execution.counts = counter.finish()
                execution.line_tensors, execution.program_bytes = counter.line_tensors, counter.program_bytes
            execution.complete = sample.complete and not loops.sampled
            if self.hollow:  # values do not matter, so neither do the programs that are not counted
                return
            rest = list(sample.edges)
            fits = each * sample.programs <= self.whole_work - before
            if fits and not sample.complete and not loops.sampled:
                done = set(sample.counted)
                rest = [p for p in sample_programs(launch.grid, None).counted if p not in done]
                execution.complete = True
            if rest:
                interpreter().run(launch, rest, coverage=coverage, memory=memory, loops=loops)
                execution.complete = execution.complete and not loops.sampled
        finally:
            self._take_faults(execution, memory)
        if loops.sampled:
            self.coverage.doubt_launch()
        self.coverage.end_launch(execution.complete)
        if not execution.complete and not self.hollow:
            self.coverage.poison([a for a in launch.args if isinstance(a, torch.Tensor)])

    def _loop_limit(self) -> LoopLimit:
        """Return the limit of a launch that begins now.

        It may take what is left of ``whole_work`` besides.
        """
        if self.hollow:
            return LoopLimit(0)
        if self.loop_work is None:
            return LoopLimit()
        return LoopLimit(max(self.work + self.loop_work, self.whole_work))

    def _estimate_work(self, execution: LaunchExecution, memory: LaunchMemory) -> None:
        """Run one program, and estimate from it what all take.

        Those that run side by side share what surrounds each operation.
        """
        launch, builder = execution.launch, interpreter().builder
        programs = sample_programs(launch.grid, None).counted
        before, builder.meter = builder.meter, WorkMeter(most=builder.meter.most)
        builder.widest = 0
        self.coverage.begin_launch(_warps(launch))
        try:
            middle = programs[len(programs) // 2 :][:1]
            interpreter().run(launch, middle, coverage=self.coverage, memory=memory)
        finally:
            one, builder.meter = builder.meter, before
            together = min(max(LANES // max(1, builder.widest), 1), len(programs))
            execution.work = one.elements * len(programs) + one.surroundings * -(-len(programs) // together)

    def _run_planned(
        self, execution: LaunchExecution, plan: InterpretationPlan, draw: ProgramDraw, memory: LaunchMemory
    ) -> None:
        """Interpret the programs that the plan draws.

        All of a launch that is small, or whose writes cannot be found in another way.
        """
        launch, meter = execution.launch, interpreter().builder.meter
        every = sample_programs(launch.grid, None).counted
        done: set[ProgramId] = set()

        def run(programs: Sequence[ProgramId]) -> None:
            rest = plan.ordered([program for program in programs if program not in done])
            if rest:
                interpreter().run(launch, rest, coverage=self.coverage, memory=memory)
                done.update(rest)

        footprint: Footprint | None = None
        if self.coverage.asks_what_is_stored:
            footprint = footprint_finder().find(launch, memory, self.coverage)
            self.coverage.stored = None if footprint is None else footprint.written
            footprint = None
        self.coverage.begin_launch(_warps(launch))
        try:
            before = meter.spent
            run(draw.programs(launch.grid))
            each = (meter.spent - before) / max(1, len(done))
            more = plan.more(len(self.executions), each * (len(every) - len(done)), meter.spent)
            if more > 0.0:
                run(replace(draw, share=more).programs(launch.grid))
            if len(done) < len(every):
                footprint = footprint_finder().find(launch, memory, self.coverage, reads=True)
                if footprint is None:
                    run(every)
            execution.complete = footprint is None
        finally:
            self._take_faults(execution, memory)
        self.coverage.end_launch(execution.complete, footprint.written if footprint is not None else None)
        if not execution.complete:
            self.coverage.poison([a for a in launch.args if isinstance(a, torch.Tensor)])

    def _take_faults(self, execution: LaunchExecution, memory: LaunchMemory) -> None:
        execution.faults = list(memory.faults.values())
        if execution.faults and self.mode == "execute":
            raise OutOfBoundsError(execution.faults[0])


def _warps(launch: CapturedLaunch) -> int:
    return int(launch.options.get("num_warps") or 4)  # Triton's default


def count_sample(launch: CapturedLaunch, sample: int) -> LaunchExecution:
    """Interpret and count ``sample`` programs of a launch that was captured before.

    Its error is kept, not raised.

    Of long loops some iterations are run, so that what the programs write is wrong: nobody may read it any more.
    """
    execution = LaunchExecution(launch)
    regions = regions_of(dict(zip(launch.fn.arg_names, launch.args, strict=False)))
    memory = LaunchMemory(regions)
    programs = sample_programs(launch.grid, sample)
    counter = OperationCounter(launch.file, programs.programs, regions)
    interpreter().recorder.clear()
    try:
        interpreter().run(launch, programs.counted, counter=counter, memory=memory, loops=LoopLimit(0))
        execution.counts = counter.finish()
        execution.line_tensors, execution.program_bytes = counter.line_tensors, counter.program_bytes
    except Exception as error:  # the kernel's own, or something that cannot run here
        execution.error = error
    execution.faults = list(memory.faults.values())
    execution.ran = interpreter().recorder.taken(launch.file)
    return execution


class OutOfBoundsError(Exception):
    """A fully executed launch left its tensors; the bad lanes were dropped."""

    device_raises: ClassVar[bool] = False

    def __init__(self, fault: OutOfBounds) -> None:
        super().__init__(describe(fault))
        self.fault = fault


def describe(fault: OutOfBounds) -> str:
    """Describe an access out of bounds in one sentence: which tensor, where first, and how often."""
    what = {"load": "reads", "store": "writes"}.get(fault.operation, "updates")
    lanes = "1 lane" if fault.lanes == 1 else f"{fault.lanes} lanes"
    programs = "1 interpreted program" if fault.programs == 1 else f"{fault.programs} interpreted programs"
    return (
        f"The {fault.operation} {what} outside {fault.tensor}: element {fault.element} of {fault.size} in program "
        f"{fault.program}; {lanes} in {programs}."
    )


def captured_launch(
    fn: Any, source: Any, metadata: Any, grid: tuple[int, int, int], args: Sequence[Any]
) -> CapturedLaunch:
    """Return a launch as the driver was given it."""
    file, line = defined_at(fn)
    constants = {fn.arg_names[key[0]]: value for key, value in source.constants.items() if len(key) == 1}
    options = dict(vars(metadata)) if not hasattr(metadata, "_asdict") else metadata._asdict()
    name = fn.fn.__qualname__.replace("<locals>.", "")
    x, y, z = (int(n) for n in grid)
    return CapturedLaunch(
        fn,
        name,
        file=file,
        line=line,
        grid=(x, y, z),
        args=tuple(args),
        signature=dict(source.signature),
        constants=constants,
        options=options,
        attrs=dict(source.attrs),
        source=source,
        metadata=metadata,
    )
