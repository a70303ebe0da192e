"""Computes the iterations of loops that promise to carry no dependency, and a grid's programs, in another order.

``nl.affine_range`` is for loops whose iterations may run in any order; a sum of products in PSUM and ``loop_reduce``
are allowed to combine them (nki.language.affine_range in the Neuron documentation). Kernel code runs in its own order,
as the compiler reads it, and the steps of its iterations are computed in a drawn one. No result that depends on the
order was ever promised. The programs of a launch are the iterations of such a loop, up to where they wait for another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import BINARY, copy_values, paired
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.index import Dim
from accelopt_profiling.nki.data.view import View


class _FreeLoop:
    """A loop: the steps, and the loops, of each iteration. ``ordered`` tells that it keeps its order, ``closed`` that
    it came to its end.
    """

    def __init__(self) -> None:
        self.iterations: list[list[Any]] = []
        self.ordered = False
        self.closed = False


class LoopOrder:
    """The loops of a run and the steps of each iteration; ``seed`` draws the order of the iterations."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._root: list[Any] = []
        self._open: list[_FreeLoop] = []
        self._taken = 0

    def iterations(self, numbers: range, steps: Callable[[], list[ComputeStep]]) -> Iterator[int]:
        """Yield the counters of a loop over ``numbers``, in their own order; ``steps`` are those of the run
        so far."""
        self._take(steps())
        loop = _FreeLoop()
        self._here().append(loop)
        self._open.append(loop)
        try:
            for number in numbers:
                self._leave_inner(loop)
                loop.iterations.append([])
                yield number
                self._take(steps())
        finally:
            self._take(steps())
            if loop in self._open:
                self._leave_inner(loop)
                self._open.pop()
                loop.closed = True

    def _leave_inner(self, loop: _FreeLoop) -> None:
        """Leave the loops that were begun in ``loop`` and not ended: a break, or a core that waits for the other."""
        if loop in self._open:
            del self._open[self._open.index(loop) + 1 :]

    def keep_order(self) -> None:
        """Note that something happened that has a meaning in the loops' own order only."""
        for loop in self._open:
            loop.ordered = True

    def reordered(self, steps: list[ComputeStep]) -> list[ComputeStep]:
        """Return all ``steps`` of the run so far, with each loop's iterations in a drawn order; begins
        anew."""
        self._take(steps)
        accumulations = _accumulations(steps)
        order: list[ComputeStep] = []
        self._flatten(self._root, order)
        places = {id(step): number for number, step in enumerate(order)}
        for group in accumulations:
            _begin_with_the_first(group, places)
        self._root, self._taken, self._open = [], 0, []
        return order

    def _here(self) -> list[Any]:
        return self._open[-1].iterations[-1] if self._open else self._root

    def _take(self, steps: list[ComputeStep]) -> None:
        """Put the steps since the last call where the run is now; one may have been taken back and issued anew."""
        self._here().extend(steps[self._taken :])
        self._taken = len(steps)

    def _flatten(self, items: list[Any], order: list[ComputeStep]) -> None:
        for item in items:
            if not isinstance(item, _FreeLoop):
                order.append(item)
                continue
            iterations = list(item.iterations)
            if item.closed and not item.ordered and len(iterations) > 1:
                self._random.shuffle(iterations)
                if iterations == item.iterations:
                    iterations.reverse()
            for iteration in iterations:
                self._flatten(iteration, order)


def _accumulations(steps: list[ComputeStep]) -> list[list[ComputeStep]]:
    """Return the steps that set a place and those that are combined with it before anything else reads it, by
    an operation that allows any order."""
    groups: list[list[ComputeStep]] = []
    under_way: dict[Block, dict[_Place, list[ComputeStep]]] = {}
    for step in steps:
        target = step.target
        combines = _combines(step)
        for item in step.inputs:
            if type(item) is View and not (combines and target is not None and item.block is target.block):
                under_way.pop(item.block, None)
        if target is None:
            continue
        place = target.offset, target.dims
        group = under_way.get(target.block, {}).get(place)
        if combines and group is not None and _operation(group[-1]) in (None, _operation(step)):
            group.append(step)
        elif combines or step.where is not None or target.positions is not None:
            under_way.pop(target.block, None)
        else:
            groups.append([step])
            under_way.setdefault(target.block, {})[place] = groups[-1]
    return [group for group in groups if len(group) > 1]


_Place = tuple[int, tuple[Dim, ...]]
#: Operations whose result is the same in any order of the operands, but for rounding.
_ASSOCIATIVE = frozenset((np.add, np.multiply, np.maximum, np.minimum))


def _operation(step: ComputeStep) -> Any:
    """Return what a step does to the place that it writes: an operation, the sum of a product, or None where
    it sets it."""
    if not _combines(step):
        return None
    return np.add if step.adds else _combination(step)


def _combination(step: ComputeStep) -> Any:
    """Return NumPy's function of what a step computes of its two inputs."""
    return BINARY[step.params[0]] if step.op is paired else step.op


def _combines(step: ComputeStep) -> bool:
    """True if a step combines a value with what its target holds, and the order of such steps does not matter."""
    target = step.target
    if target is None or step.where is not None or target.positions is not None:
        return False
    if step.adds:
        return True
    own = [_is_place(item, target) for item in step.inputs]
    return _combination(step) in _ASSOCIATIVE and len(own) == 2 and own.count(True) == 1


def _is_place(item: Any, target: View) -> bool:
    return (
        type(item) is View
        and item.block is target.block
        and item.positions is None
        and (item.offset, item.dims) == (target.offset, target.dims)
    )


def _begin_with_the_first(group: list[ComputeStep], places: dict[int, int]) -> None:
    """Let the step of a group that comes first now set the place, and the one that set it combine."""
    old, new = group[0], min(group, key=lambda step: places[id(step)])
    if new is old:
        return
    if new.adds:
        old.adds, new.adds = True, False
        return
    assert new.target is not None
    own = _is_place(new.inputs[0], new.target)
    held, value = new.inputs if own else reversed(new.inputs)
    old.params, old.op = (new.op, new.params, old.op, old.params), _combined
    old.inputs = [held, *old.inputs]
    new.op, new.params, new.inputs = copy_values, (), [value]


def _combined(
    combine: Callable[..., Any], combine_params: tuple[Any, ...], value: Callable[..., Any], params: tuple[Any, ...],
    held: Any, *inputs: Any,
) -> Any:  # fmt: skip
    """Return what two steps compute together: ``held`` combined with the value of another."""
    return combine(*combine_params, held, value(*params, *inputs))
