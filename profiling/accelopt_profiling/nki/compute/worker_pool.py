"""Computes steps on several threads, each as soon as the steps it depends on are done.

NumPy releases the interpreter lock while it computes. A step waits for the last writer of every block that it reads,
and a writer also for all readers before it, so the values are bit for bit those of computing one step after the other.
"""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Callable

import numpy as np

from accelopt_profiling.nki.compute.step import ComputeStep, run_step
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.data.view import View

#: Fewer steps than this are computed on the calling thread.
FEWEST_STEPS = 64
#: The most threads: more of them wait for each other and for Python.
_MOST = 4
#: How far ahead of the first unfinished step others may begin: bounds the memory that is alive.
WINDOW = 256


def thread_count() -> int:
    """Return the number of threads to use: one per processor that this process may run on, up to four."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, _MOST)


class _Uses:
    """The last step that wrote a block, and the steps that have read it since."""

    __slots__ = ("readers", "writer")

    def __init__(self) -> None:
        self.writer = -1
        self.readers: list[int] = []


class StepOrder:
    """The steps that each step waits for, and the blocks that are free once all steps that touch them are done."""

    def __init__(self, steps: list[ComputeStep], final: bool) -> None:
        self.steps = steps
        self.waits = [0] * len(steps)
        self.then: list[list[int]] = [[] for _ in steps]
        self.touched: list[tuple[Block, ...]] = []
        self.left: dict[Block, int] = {}
        uses: dict[Block, _Uses] = {}
        numbers = {id(step): number for number, step in enumerate(steps) if step.keep}
        for number, step in enumerate(steps):
            before: set[int] = set()
            target = step.target
            blocks = [item.block for item in step.inputs if type(item) is View]
            before.update(
                numbers[id(item)] for item in step.inputs if type(item) is ComputeStep and id(item) in numbers
            )
            for block in blocks:
                self._reads(uses.setdefault(block, _Uses()), block, number, before)
            if target is not None:
                use = uses.setdefault(target.block, _Uses())
                before.update(use.readers)
                before.add(use.writer)
                use.writer, use.readers = number, []
                blocks.append(target.block)
            before.discard(-1)
            before.discard(number)
            self.waits[number] = len(before)
            for earlier in before:
                self.then[earlier].append(number)
            self.touched.append(tuple({b for b in blocks if final and b.info.memory is not MemorySpace.HBM}))
            for block in self.touched[-1]:
                self.left[block] = self.left.get(block, 0) + 1

    @staticmethod
    def _reads(use: _Uses, block: Block, number: int, before: set[int]) -> None:
        before.add(use.writer)
        if block.storage is None and use.writer < 0:  # the first read makes the memory
            before.update(use.readers)
            use.writer, use.readers = number, []
        else:
            use.readers.append(number)


class WorkerPool:
    """Threads that compute the steps of an order."""

    def __init__(self, order: StepOrder) -> None:
        self.order = order
        self.ready = [number for number, count in enumerate(order.waits) if not count]  # sorted: a heap
        self.remaining = len(order.steps)
        self.done = bytearray(len(order.steps) + 1)
        self.first = 0  # the first step that is not done
        self.changed = threading.Condition()
        self.error: BaseException | None = None

    def run(self, count: int) -> None:
        """Compute everything on ``count`` threads, this one among them.

        Raises:
            Exception: whatever a step raised; no further step is begun then.
        """
        others = [threading.Thread(target=self._work, name=f"nki-{n}") for n in range(count - 1)]
        for thread in others:
            thread.start()
        self._work()
        for thread in others:
            thread.join()
        if self.error is not None:
            raise self.error

    def _work(self) -> None:
        try:
            with np.errstate(all="ignore"):
                self._steps(run_step)
        except BaseException as error:
            with self.changed:
                self.error = self.error or error
                self.changed.notify_all()

    def _steps(self, do: Callable[[ComputeStep], None]) -> None:
        order, ready, changed = self.order, self.ready, self.changed
        while True:
            with changed:
                while (
                    self.remaining and self.error is None and not (ready and ready[0] < self.first + WINDOW)
                ):
                    changed.wait()
                if not self.remaining or self.error is not None:
                    return
                number = heapq.heappop(ready)
            do(order.steps[number])
            with changed:
                self.remaining -= 1
                self.done[number] = 1
                free = int(number == self.first and bool(ready))
                while self.done[self.first]:
                    self.first += 1
                for later in order.then[number]:
                    order.waits[later] -= 1
                    if not order.waits[later]:
                        heapq.heappush(ready, later)
                        free += 1
                for block in order.touched[number]:
                    order.left[block] -= 1
                    if not order.left[block]:
                        block.release()
                if free > 1 or not self.remaining:
                    changed.notify_all()
