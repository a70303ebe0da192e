"""Computes the time that one instruction keeps its engine busy.

Formulas: the docstrings of the ``nki.isa`` stub up to Neuron SDK 2.26.1 (engine cycles for back-to-back instructions
of one shape), plus what starting an instruction costs on each engine. A division is not in them; it is taken to cost
what the reciprocal does.
"""

from __future__ import annotations

from math import prod

from accelopt_profiling.nki.data.instruction import GPSIMD, SCALAR, TENSOR, TracedInstruction
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.hardware import Hardware


def engine_ns(
    instruction: TracedInstruction, engine: str, hardware: Hardware, psum_inputs: int | None = None
) -> float:
    """Return the nanoseconds that ``instruction`` occupies the compute engine ``engine``.

    ``psum_inputs`` overrides how many of its operands lie in PSUM.
    """
    if psum_inputs is None:
        psum_inputs = instruction.psum_inputs
    return _cycles(instruction, engine, hardware, psum_inputs) / hardware.clocks[engine]


def _cycles(i: TracedInstruction, engine: str, hardware: Hardware, psum_inputs: int) -> float:
    least, n = hardware.min_cycles, float(i.free)
    if engine == TENSOR:
        return _matmul(i, hardware)
    if engine == GPSIMD:
        return hardware.gpsimd_overhead + n * (2 if i.opcode in ("tensor_tensor", "divide") else 1)
    if engine == SCALAR:
        extra = 64 if i.opcode == "activation_reduce" else 0
        return max(least, n) + extra + hardware.scalar_overhead
    match i.opcode:
        case "tensor_tensor" | "select" | "tensor_copy_predicated":
            factor = 1.0 if psum_inputs == 1 else 2.0
        case "tensor_tensor_scan" | "scalar_tensor_tensor":
            factor = 2.0
        case "reciprocal" | "divide_scalar":
            factor = hardware.reciprocal_cycles
        case "divide":
            factor = hardware.reciprocal_cycles + 2.0
        case "bn_aggr":
            factor = 13.0 / 3.0
        case "memset":
            factor = 0.5 if i.itemsize == 2 else 1.0
        case _:
            factor = 1.0
    return max(least, factor * n / _bf16_speedup(i, hardware)) + hardware.vector_overhead


def _bf16_speedup(i: TracedInstruction, hardware: Hardware) -> float:
    """Return how much faster VectorE is where every tile of an instruction has elements of two bytes."""
    if i.opcode not in ("tensor_copy", "tensor_scalar", "tensor_tensor"):
        return 1.0
    place = bf16_place(i)
    if i.opcode == "tensor_tensor":
        return hardware.bf16_pair_speedup if place is MemorySpace.SBUF and i.psum_inputs == 0 else 1.0
    if place is None:
        return 1.0
    return hardware.bf16_copy_speedup if place is MemorySpace.SBUF else hardware.bf16_copy_speedup_psum


def bf16_place(i: TracedInstruction) -> MemorySpace | None:
    """Return where the tiles of an instruction lie if all have elements of two bytes, PSUM if one of them does; None
    for wider ones. Columns of one element per partition do not count."""
    place = MemorySpace.SBUF
    for block, _ in (*i.reads, *i.writes):
        elements = prod(block.shape[1:])
        if elements > 1 and block.free_bytes != 2 * elements:
            return None
        if block.memory is not MemorySpace.SBUF:
            place = MemorySpace.PSUM
    return place if i.writes else None


def _matmul(i: TracedInstruction, hardware: Hardware) -> float:
    passes, overhead = 1.0, hardware.matmul_overhead
    if i.itemsize >= 4:
        passes = hardware.fp32_onezero_passes if i.onezero else hardware.fp32_passes
        overhead = hardware.fp32_overhead
    columns = max(min(hardware.min_cycles, float(i.stationary)), float(i.free))
    return passes * (columns + overhead)


def dma_ns(size: int, descriptors: int, hardware: Hardware) -> float:
    """Return the nanoseconds that a transfer of ``size`` bytes occupies all DMA queues together: its bytes, and a
    fixed cost for each contiguous piece; at least what it takes to issue one."""
    moved = size / hardware.dma_gbps + descriptors * hardware.descriptor_ns / hardware.dma_queues
    return max(moved, hardware.transfer_ns)
