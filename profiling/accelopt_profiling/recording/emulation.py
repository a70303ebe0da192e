"""Answer the framework's CUDA calls of a whole program on a machine without a GPU, while its launches are recorded.

Launches are interpreted as long as that is cheap. One that would take long, and every one after the budget is used up,
is recorded but not executed to its end: what it would write is not known, floats of new tensors are NaN, and
comparisons of tensors succeed from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelopt_profiling.triton.capture.install import emulated
from accelopt_profiling.triton.capture.session import CaptureSession, captured_launch, interpreter
from accelopt_profiling.triton.interpreter.loops import LoopLimit
from accelopt_profiling.triton.interpreter.memory_bounds import LaunchMemory, regions_of
from accelopt_profiling.triton.interpreter.sampling import sample_programs
from accelopt_profiling.triton.interpreter.work import SECOND
from accelopt_profiling.triton.launch import CapturedLaunch

#: What interpreting may take: one launch, and all of a process.
LAUNCH_WORK = 4 * SECOND
RUN_WORK = 150 * SECOND
#: A launch of more programs is not tried.
_MOST_PROGRAMS = 1 << 17


class RecordingEmulation:
    """A GPU that is emulated until the process ends. ``executed`` and ``skipped`` count launches."""

    def __init__(self, target: str) -> None:
        self._context = emulated(target, "execute", lenient=True)
        self._session: CaptureSession = self._context.__enter__()
        self._session.driver.record = self._record
        self.executed = self.skipped = 0

    def _record(
        self, fn: Any, source: Any, metadata: Any, grid: tuple[int, int, int], args: Sequence[Any]
    ) -> None:
        if self._session.driver.tuning:
            return
        launch = captured_launch(fn, source, metadata=metadata, grid=grid, args=args)
        complete = self._session.work < RUN_WORK and launch.programs <= _MOST_PROGRAMS and self._run(launch)
        self.executed += complete
        self.skipped += not complete
        if not complete:
            self._session.coverage.sampled = True

    def _run(self, launch: CapturedLaunch) -> bool:
        """Interpret a launch in growing parts. False where it fails here or the rest would take too long."""
        regions = regions_of(dict(zip(launch.fn.arg_names, launch.args, strict=False)))
        pointed_to = {f"pointer {i}": t for i, t in enumerate(self._session.device.raw_pointers.values())}
        memory = LaunchMemory(regions, regions_of(pointed_to))
        programs = sample_programs(launch.grid, None).counted
        session = self._session
        started, done, size = session.work, 0, 1
        loops = LoopLimit(started + LAUNCH_WORK)
        try:
            while done < len(programs):
                part = programs[done : done + size]
                before = session.work
                interpreter().run(launch, part, memory=memory, loops=loops)
                if loops.sampled:
                    return False
                done += len(part)
                rest = (session.work - before) / len(part) * (len(programs) - done)
                if session.work - started + (rest if size > 1 else 0.0) > LAUNCH_WORK:
                    return done >= len(programs)
                size *= 16
        except Exception:  # the kernel's own, or what cannot run here: the launch is recorded all the same
            return False
        return not memory.faults
