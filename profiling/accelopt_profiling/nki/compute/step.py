"""Work put off: what instructions compute is noted while the kernel's Python runs, and done afterwards in one go.

The order of the steps is the program's, so the result is bit for bit that of running each at once. Knowing all of them
first lets a block's memory go after its last step, and keeps Python's bookkeeping out of the way of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.process_settings import one_thread
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.dtypes import is_float
from accelopt_profiling.nki.data.index import BoolArray
from accelopt_profiling.nki.data.instruction import Memory
from accelopt_profiling.nki.data.loop_counter import plain
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.heap import keep_freed_memory


class Step:
    """``target = function(*inputs)``, where ``where`` says so; ``adds`` to it for a product into PSUM.

    Inputs are views, steps whose ``result`` is kept, or plain values.
    """

    __slots__ = ("adds", "function", "inputs", "keep", "result", "target", "where")

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any]) -> None:
        self.function, self.inputs = function, [plain(item) for item in inputs]
        for cell in getattr(function, "__closure__", None) or ():
            plain(cell.cell_contents)  # computed with when the loop is over
        self.target: View | None = None
        self.where: BoolArray | None = None
        self.adds = self.keep = False
        self.result: Any = None


class Work:
    """The steps of a run that have not been done yet."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def newest(self, step: Step | None) -> bool:
        """Whether ``step`` is the newest one, so that its target can still be changed."""
        return bool(self.steps) and self.steps[-1] is step

    def do(self, final: bool = False) -> None:
        """Do all steps. At the end of a run (``final``) on-chip memory goes as soon as nothing needs it."""
        steps, self.steps = self.steps, []
        if not steps:
            return
        keep_freed_memory()
        from accelopt_profiling.nki.compute import copy_elision as forwarding
        from accelopt_profiling.nki.compute import worker_pool as parallel

        if final:
            steps = forwarding.forwarded(steps)
        count = parallel.threads() if len(steps) >= parallel.FEWEST else 1
        with one_thread():
            if count > 1 and all(step.target is not None or step.keep for step in steps):
                parallel.Team(parallel.Order(steps, final)).run(count)
                return
            ends = _ends(steps) if final else {}
            with np.errstate(all="ignore"):
                for number, step in enumerate(steps):
                    do_step(step)
                    for block in ends.get(number, ()):
                        block.release()


def do_step(step: Step) -> None:
    """Compute, and put the result in its place."""
    values = []
    for item in step.inputs:
        if type(item) is View:
            item = item.array()
            if item.dtype.itemsize < 4 and is_float(item.dtype):
                item = item.astype(np.float32)
        elif type(item) is Step:
            item = item.result
        values.append(item)
    made = step.function(*values)
    if step.keep:
        step.result = made
    if step.target is not None:
        _store(step.target, made, step.where, step.adds, values)


def _store(target: View, made: Any, where: BoolArray | None, adds: bool, values: Sequence[Any]) -> None:
    """Put a result in its place: as the block's memory where it can be, else copied."""
    block = target.block
    if not isinstance(made, np.ndarray):
        made = np.asarray(made)
    if adds and not (block.blank and target.whole and not block.fill):
        into = target.array(writable=True)
        np.add(into, made.reshape(into.shape), out=into, casting="unsafe")
        return
    if target.whole and where is None and made.dtype == block.dtype and made.size == prod(block.shape):
        if not made.flags.c_contiguous:
            made = np.ascontiguousarray(made)
        elif any(isinstance(v, np.ndarray) and np.may_share_memory(made, v) for v in values):
            made = made.copy()
        block.adopt(made.reshape(block.shape))
        return
    shape = target.positions.shape if target.positions is not None else tuple(num for num, _ in target.dims)
    if made.shape != shape:
        made = made.reshape(shape) if made.size == prod(shape) else np.broadcast_to(made, shape)
    if target.positions is not None:
        storage = block.writable()
        storage.reshape(-1)[target.positions] = made
        return
    into = target.array(writable=True)
    if any(isinstance(v, np.ndarray) and v.base is not None and np.may_share_memory(into, v) for v in values):
        made = made.copy()
    if where is None:
        np.copyto(into, made, casting="unsafe")
    else:
        np.copyto(into, made, casting="unsafe", where=where)


def _ends(steps: list[Step]) -> dict[int, list[Block]]:
    """The on-chip blocks that nothing touches after a step."""
    last: dict[int, tuple[int, Block]] = {}
    for number, step in enumerate(steps):
        for item in (*step.inputs, step.target):
            if type(item) is View and item.block.place.memory is not Memory.HBM:
                last[id(item.block)] = (number, item.block)
    found: dict[int, list[Block]] = {}
    for number, block in last.values():
        found.setdefault(number, []).append(block)
    return found
