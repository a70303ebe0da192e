"""Collects the computations of a run and does them later, in one go.

The steps keep the program's order, so the result is that of computing each instruction at once. Knowing all steps
first allows three things: copies can be left out, a block's memory can be freed after its last use, and Python's
bookkeeping stays out of the way of the arithmetic.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute import worker_pool
from accelopt_profiling.nki.compute.copy_elision import elide_copies
from accelopt_profiling.nki.compute.loop_order import LoopOrder
from accelopt_profiling.nki.compute.process_settings import keep_freed_memory, one_thread
from accelopt_profiling.nki.compute.step import ComputeStep, run_step
from accelopt_profiling.nki.data.block import Array, Block
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.data.view import View


class DeferredSteps:
    """The steps of a run that have not been computed yet, in the program's order. With an ``order`` the iterations of
    loops that promise to take any order are computed in another one.
    """

    def __init__(self, order: LoopOrder | None = None) -> None:
        self.order = order
        self.steps: list[ComputeStep] = []
        self._lent: list[tuple[Block, Array]] = []

    def lend(self, block: Block, array: Array) -> None:
        """Let a block hold a caller's array from when steps are computed on, and no values until then."""
        self._lent.append((block, array))

    @property
    def newest(self) -> ComputeStep | None:
        return self.steps[-1] if self.steps else None

    def is_newest(self, step: ComputeStep | None) -> bool:
        """Return True if ``step`` is the newest one, so that its target can still be changed."""
        return bool(self.steps) and self.steps[-1] is step

    def run(self, final: bool = False) -> None:
        """Compute all steps. At the end of a run (``final``) on-chip memory is freed as soon as nothing needs it."""
        for block, array in self._lent:
            block.borrow(array)
        self._lent.clear()
        steps, self.steps = self.steps, []
        if not steps:
            return
        _check_ops(steps)
        if self.order is not None:
            steps = self.order.reordered(steps)
        keep_freed_memory()
        if final:
            steps = elide_copies(steps)
        count = worker_pool.thread_count() if len(steps) >= worker_pool.FEWEST_STEPS else 1
        with one_thread():
            if count > 1:
                worker_pool.WorkerPool(worker_pool.StepOrder(steps, final)).run(count)
                return
            last_uses = _last_uses(steps) if final else {}
            with np.errstate(all="ignore"):
                for number, step in enumerate(steps):
                    run_step(step)
                    for block in last_uses.get(number, ()):
                        block.release()


class ForeignCodeError(Exception):
    """A step computes with code that is not the emulator's: a kernel has reached into it."""


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _ops(values: tuple[Any, ...]) -> Iterator[Any]:
    """Yield what can be called among ``values``, also inside of tuples."""
    for value in values:
        if type(value) is tuple:
            yield from _ops(value)
        elif callable(value):
            yield value


def _check_ops(steps: list[ComputeStep]) -> None:
    """Check that steps compute with functions of the emulator's modules, without closures, and of NumPy only.

    Raises:
        ForeignCodeError: one does not.
    """
    ops = {op for step in steps for op in _ops((step.op, step.params))}
    for op in ops - {np.asarray, np.copy}:
        plain = type(op) is FunctionType and op.__closure__ is None
        own = plain and os.path.abspath(op.__code__.co_filename).startswith(_PACKAGE)
        if type(op) is not np.ufunc and not own:
            raise ForeignCodeError("The kernel put code of its own into the emulator.")


def _last_uses(steps: list[ComputeStep]) -> dict[int, list[Block]]:
    """Return the on-chip blocks that no step after the numbered one touches."""
    last: dict[int, tuple[int, Block]] = {}
    for number, step in enumerate(steps):
        for item in (*step.inputs, step.target):
            if type(item) is View and item.block.info.memory is not MemorySpace.HBM:
                last[id(item.block)] = (number, item.block)
    blocks: dict[int, list[Block]] = {}
    for number, block in last.values():
        blocks.setdefault(number, []).append(block)
    return blocks
