"""Counts the work that a kernel's result needs, and computes the least time that it takes: the longest of bytes over
bandwidth, products over TensorE's peak, and elementwise operations over the rate of VectorE and ScalarE together. This
is NKIBench's formula; its tasks state their work, that of a trace is counted.

Each product counts once, however often it is made, in the passes of TensorE that the kernel takes for it: four in
float32, one in bfloat16, three where float32 is multiplied in three bfloat16 parts. Four for each product of float32
tensors, as the formula has it, are no least time: a kernel that takes three would be above its peak.

NKIBench states a task's work by a formula. A trace has none, but it tells what the operands of a product were loaded
from. Products on several lines whose operands cover the same parts of the same tensors are one product: that of a
float32 operand in bfloat16 parts, or one that is made again for another use. Of these the line with the most work
counts, or all of them as they were made where that takes fewer passes. A product with a constant (a sum, a broadcast, a
transpose) is no work, as in the formulas.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import NamedTuple

from accelopt_profiling.nki.data.coverage import is_whole
from accelopt_profiling.nki.data.instruction import DMA, SCALAR, VECTOR, BlockInfo, TracedInstruction
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.operations.table import opcode_cost
from accelopt_profiling.nki.time_model.hardware import Hardware

#: What a value was made of: tensors, or products as pairs of what their operands were made of.
_Source = BlockInfo | frozenset["frozenset[_Source]"]
#: The first and the last element that were used of each source (of a product all count as one).
_Made = dict[_Source, tuple[int, int]]


#: Passes of TensorE for a product of operands of four bytes.
PASSES = 4


class Work(NamedTuple):
    """Bytes that move, floating-point operations that TensorE makes in float32 and in narrower types, elementwise
    operations."""

    moved: float
    wide: float
    narrow: float
    operations: float


def least_times_us(work: Work, hardware: Hardware) -> dict[str, float]:
    """Return the least microseconds that ``work`` takes by each of "memory", "matmul" and "vector"."""
    return {
        "memory": work.moved / hardware.hbm_gbps / 1e3,
        "matmul": (work.wide / hardware.fp32_tflops + work.narrow / hardware.bf16_tflops) / 1e6,
        "vector": work.operations / hardware.elementwise_gops / 1e3,
    }


def operations(by_engine: Iterable[tuple[TracedInstruction, str]]) -> int:
    """Return the elements that VectorE and ScalarE compute, of instructions with the engine that runs each, without
    what is free on the way."""
    return sum(
        i.partitions * i.free
        for i, engine in by_engine
        if engine in (VECTOR, SCALAR) and not i.transpose and not opcode_cost(i.opcode).avoidable
    )


class _Product:
    """All products of one line with operands of the same tensors."""

    def __init__(self) -> None:
        self.flops = self.passes = 0  # floating-point operations, and the same times their passes
        self.operands: tuple[_Made, _Made] = ({}, {})

    def add(self, i: TracedInstruction, operands: tuple[_Made, _Made]) -> None:
        self.flops += i.flops
        self.passes += i.flops * (PASSES if i.itemsize >= PASSES else 1)
        for mine, other in zip(self.operands, operands, strict=True):
            _join(mine, other)

    @property
    def covers(self) -> frozenset[frozenset[tuple[_Source, tuple[int, int]]]]:
        return frozenset(frozenset(operand.items()) for operand in self.operands)


class Products(NamedTuple):
    """Floating-point operations of the products that a result needs: each counted ``once``, and as TensorE makes them
    in float32 and in narrower types, where each part of a float32 product counts."""

    once: int
    in_float32: int
    narrow: int

    @property
    def passes(self) -> float:
        """Passes of TensorE for each: 4 in float32, 3 in three bfloat16 parts, 1 in bfloat16; 0 without products."""
        return (PASSES * self.in_float32 + self.narrow) / self.once if self.once else 0.0


def needed_products(instructions: Iterable[TracedInstruction]) -> Products:
    """Count the products that the result of ``instructions`` needs."""
    sources: dict[BlockInfo, _Made] = {}
    products: dict[tuple[int, frozenset[_Source], frozenset[_Source]], _Product] = {}
    wide: set[_Source] = set()
    for i in instructions:
        operands = [_made_of(i, block, sources, wide) for block, _ in i.reads]
        result: _Made = {}
        if len(operands) == 1:
            result = operands[0]
        elif i.flops and not i.transpose and len(operands) >= 2:
            if operands[0] and operands[1]:
                one, other = frozenset(operands[0]), frozenset(operands[1])
                products.setdefault((i.line, one, other), _Product()).add(i, (operands[0], operands[1]))
                source = frozenset((one, other))
                result[source] = (0, 0)
                if wide & (one | other):
                    wide.add(source)
            else:
                _join(result, operands[0] or operands[1])
        else:
            for operand in operands:
                _join(result, operand)
        for block, box in i.writes:
            if i.accumulate or block.memory is MemorySpace.HBM or not is_whole(box, block.shape):
                _join(sources.setdefault(block, {}), result)
            else:
                sources[block] = dict(result)
    same: dict[object, list[tuple[_Product, bool]]] = {}
    for (_, one, other), product in products.items():
        same.setdefault(product.covers, []).append((product, bool(wide & (one | other))))
    total = in_float32 = narrow = 0
    for lines in same.values():
        once, is_wide = max((product.flops, is_wide) for product, is_wide in lines)
        passes = sum(product.passes for product, _ in lines)
        total += once
        if is_wide and once * PASSES <= passes:
            in_float32 += once
        else:
            narrow += once if not is_wide else passes
    return Products(total, in_float32, narrow)


def _made_of(
    i: TracedInstruction, block: BlockInfo, sources: dict[BlockInfo, _Made], wide: set[_Source]
) -> _Made:
    if not block.constant:
        return sources.get(block, {})
    if block not in wide and prod(block.shape[1:]) * 4 <= block.free_bytes:
        wide.add(block)
    if i.engines[0] != DMA or i.pattern is None:
        return {block: (0, prod(block.shape) - 1)}
    first, dims = i.pattern
    return {block: (first, first + sum((number - 1) * abs(step) for number, step in dims))}


def _join(sources: _Made, other: _Made) -> None:
    """Add what ``other`` was made of."""
    for source, (low, high) in other.items():
        bounds = sources.get(source)
        sources[source] = (low, high) if bounds is None else (min(low, bounds[0]), max(high, bounds[1]))
