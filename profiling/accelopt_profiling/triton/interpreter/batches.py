"""Run programs of a launch side by side where the result is the same as one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from accelopt_profiling.triton.interpreter.coverage import SampleCoverage
from accelopt_profiling.triton.interpreter.lockstep import Array, DivergenceError, LockstepError
from accelopt_profiling.triton.interpreter.memory_operations import StoreLog
from accelopt_profiling.triton.interpreter.sampling import ProgramId

#: Fewer programs than this are not worth it.
FEWEST = 8
#: The widest access of all programs of a batch together has at most so many lanes. Measured: with a quarter of it what
#: surrounds each operation costs more than a cache saves (a product of 512x1024 by 1024x2048 takes 1.4 times as long).
LANES = 1 << 20
#: How often a launch's batches are divided where control flow differs among programs.
_DIVISIONS = 24


class _Builder(Protocol):
    lanes: Array | None
    log: StoreLog | None
    coverage: SampleCoverage | None
    widest: int

    def set_grid_idx(self, x: int, y: int, z: int) -> None: ...


class Batches:
    """The programs of one launch.

    ``call`` runs the kernel's body for the programs that the builder is set to.
    """

    def __init__(self, builder: _Builder, call: Callable[[], Any], coverage: SampleCoverage | None) -> None:
        self._builder, self._call, self._coverage = builder, call, coverage
        self._divisions = _DIVISIONS

    def run(self, programs: Sequence[ProgramId]) -> list[ProgramId]:
        """Run the programs that can run side by side.

        Return the others, to be run one by one in their order.

        The last program is first run alone and its stores are undone. That run shows how much a program accesses, and
        what its batch has to write for it; where the batch writes something else, nothing is run side by side.
        """
        rest = list(programs)
        if len(rest) < FEWEST:
            return rest
        self._last = rest[-1]
        wrote = self._alone(self._last)
        if wrote is None:
            return rest
        self._wrote = wrote
        size = min(max(LANES // max(1, self._builder.widest), 1), len(rest))
        batches = [rest[n : n + size] for n in range(0, len(rest), size)]
        rest = []
        while batches:  # the batch with the last program comes first
            refused = self._batch(batches.pop())
            rest += refused
            if refused and self._divisions < 0:
                break
        again = {*rest, *(program for batch in batches for program in batch)}
        return [program for program in programs if program in again]

    def _alone(self, program: ProgramId) -> list[tuple[bytes, bytes]] | None:
        builder, log = self._builder, StoreLog()
        builder.log, builder.widest = log, 0
        builder.coverage = None  # what is undone tells of no program
        builder.set_grid_idx(*program)
        try:
            self._call()
            return log.of(0)
        except Exception:  # it raises again when it is run for good
            return None
        finally:
            log.undo()
            builder.log, builder.coverage = None, self._coverage

    def _batch(self, programs: list[ProgramId]) -> list[ProgramId]:
        if len(programs) < FEWEST or self._divisions < 0:
            return programs
        log = StoreLog()
        try:
            self._together(programs, log)
        except DivergenceError as diverged:
            self._undo(log)
            self._divisions -= 1
            groups = [[programs[int(n)] for n in group] for group in diverged.groups]
            return [program for group in groups for program in self._batch(group)]
        except Exception:  # refused, or what the kernel raises: one by one it shows as what it is
            self._undo(log)
            self._divisions = -1
            return programs
        return []

    def _undo(self, log: StoreLog) -> None:
        log.undo()
        if self._coverage is not None:
            self._coverage.undo_batch()

    def _together(self, programs: list[ProgramId], log: StoreLog) -> None:
        builder, coverage = self._builder, self._coverage
        builder.lanes, builder.log = np.array(programs, np.int64), log
        builder.set_grid_idx(*programs[0])
        if coverage is not None:
            coverage.begin_batch()
        try:
            self._call()
        finally:
            builder.lanes = builder.log = None
        if self._last in programs and log.of(programs.index(self._last)) != self._wrote:
            raise LockstepError("another result than one by one")
        if coverage is not None:
            coverage.end_program()
