"""Loops of interpreted kernels: ``range`` and ``tl.range`` give scalars of Triton's types, as in compiled code.

Where only the cost matters, or a launch takes too long, some iterations of a long loop stand for all that are left: one
from each of equal strata, at a place that differs from stratum to stratum, so that what happens every so many
iterations is met as often as it happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import triton.language as tl

from accelopt_profiling.triton.interpreter.counting import OperationCounter
from accelopt_profiling.triton.interpreter.lockstep import (
    Array,
    DivergenceError,
    LockstepError,
    Varying,
    varies,
)
from accelopt_profiling.triton.interpreter.work import WorkMeter
from accelopt_profiling.triton_adapter.interpreter import TensorHandle

#: Longer loops are sampled, with this many iterations. Our choice.
SAMPLED_ABOVE, SAMPLED = 24, 12
#: The golden ratio's fraction: its multiples fall into all parts of a stratum alike.
_SPREAD = 0.6180339887


class _CountingBuilder(Protocol):
    counter: OperationCounter | None
    loops: LoopLimit
    meter: WorkMeter


@dataclass
class LoopLimit:
    """When long loops of a launch begin to be sampled: once the meter has spent ``until``, at once where that is 0,
    never where it is None. ``sampled`` tells that one was: what the launch computed since is wrong.
    """

    until: int | None = None
    sampled: bool = False

    def reached(self, meter: WorkMeter) -> bool:
        return self.until is not None and meter.spent >= self.until


class InterpretedRange:
    """The values of a loop.

    ``bounds`` are those of Python's ``range``; they may be tensors or compile-time values. Where they differ among
    programs that run side by side, so do the values.

    Raises:
        DivergenceError: programs that run side by side go round different numbers of times.
    """

    def __init__(self, builder: _CountingBuilder, *bounds: Any) -> None:
        self._builder = builder
        self._starts: Array | None = None
        if varies(b.handle for b in bounds if isinstance(b, tl.tensor)):
            self._starts, stops, self._steps = np.broadcast_arrays(*map(_each, bounds))
            if not self._steps.all():
                raise LockstepError("a range whose step is zero")
            counts = np.maximum(0, -((self._starts - stops) // self._steps))
            if (counts != counts[0]).any():
                raise DivergenceError([np.flatnonzero(counts == n) for n in np.unique(counts)])
            ends = int(self._starts.min()), int(stops.max())
            self._values = range(int(counts[0]))
        else:
            self._values = range(*(_whole(bound) for bound in bounds))
            ends = self._values.start, self._values.stop
        wide = any(isinstance(b, tl.tensor) and b.dtype.primitive_bitwidth > 32 for b in bounds)
        self._type, self._kind = (
            (tl.int64, np.int64)
            if wide or any(not -(1 << 31) <= n < 1 << 31 for n in ends)
            else (tl.int32, np.int32)
        )

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        builder, counter = self._builder, self._builder.counter
        if counter is None or not counter.enabled:
            counter = None
        before = counter.weight if counter is not None else 1.0
        try:
            for number in self._picked(counter):
                builder.meter.spend(0)
                if counter is not None:
                    counter.begin_iteration()
                yield tl.tensor(self._value(number), self._type)
        finally:
            if counter is not None:
                counter.weight = before

    def _picked(self, counter: OperationCounter | None) -> Iterator[int]:
        """Give the numbers of the iterations to run: all, and from the limit on some with as much more weight."""
        for number in range(len(self._values)):
            rest = len(self._values) - number
            if rest > SAMPLED_ABOVE and self._builder.loops.reached(self._builder.meter):
                break
            yield number
        else:
            return
        self._builder.loops.sampled = True
        if counter is not None:
            counter.weight *= rest / SAMPLED
            counter.counts.loops_sampled = True
        for further in sampled_iterations(rest, SAMPLED):
            yield number + further

    def _value(self, number: int) -> Any:
        if self._starts is None:
            return TensorHandle(np.array([self._values[number]], self._kind), self._type)
        values = (self._starts + number * self._steps).astype(self._kind)
        return Varying(values.reshape(-1, 1), self._type)


def sampled_iterations(count: int, size: int) -> Any:
    """Return ``size`` iterations out of ``count`` in their order, one from each of equal strata."""
    stratum = count / size
    return [min(count - 1, int((n + (n + 1) * _SPREAD % 1) * stratum)) for n in range(size)]


def _each(bound: Any) -> Array:
    """Return a bound for each program, or one for all."""
    if not isinstance(bound, tl.tensor):
        return np.array([_whole(bound)])
    return np.asarray(bound.handle.data).reshape(-1).astype(np.int64)


def _whole(bound: Any) -> int:
    return int(bound.value if isinstance(bound, tl.constexpr) else bound.__index__())
