"""How long one instruction keeps its engine busy.

Formulas: the docstrings of the ``nki.isa`` stub up to Neuron SDK 2.26.1 (engine cycles for back-to-back instructions
of one shape), plus the access latency that the documentation gives for each instruction. A division is not in
them; it is taken to cost what the reciprocal does.
"""

from __future__ import annotations

from accelopt_profiling.nki.instruction import GPSIMD, SCALAR, TENSOR, Instruction
from accelopt_profiling.nki.time_model.hardware import Hardware


def engine_ns(instruction: Instruction, engine: str, hardware: Hardware) -> float:
    """Nanoseconds that ``instruction`` occupies the compute engine ``engine``."""
    return _cycles(instruction, engine, hardware) / hardware.clocks[engine]


def _cycles(i: Instruction, engine: str, hardware: Hardware) -> float:
    least, n = hardware.min_cycles, float(i.free)
    if engine == TENSOR:
        return _matmul(i, hardware)
    if engine == GPSIMD:
        return hardware.gpsimd_overhead + n * (2 if i.opcode in ("tensor_tensor", "divide") else 1)
    overhead = hardware.access_cycles
    if engine == SCALAR:
        extra = 64 if i.opcode == "activation_reduce" else 0
        return max(least, n) + extra + overhead
    match i.opcode:
        case "tensor_tensor" | "select" | "tensor_tensor_scan" | "tensor_copy_predicated":
            factor = 1.0 if i.psum_inputs == 1 and i.opcode != "tensor_tensor_scan" else 2.0
        case "scalar_tensor_tensor":
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
    return max(least, factor * n) + overhead


def _matmul(i: Instruction, hardware: Hardware) -> float:
    passes = 1.0
    if i.itemsize >= 4:
        passes = hardware.fp32_onezero_passes if i.onezero else hardware.fp32_passes
    return passes * max(min(hardware.min_cycles, float(i.stationary)), float(i.free))


def dma_ns(instruction: Instruction, hardware: Hardware) -> float:
    """Nanoseconds that a transfer occupies all DMA queues together: its bytes, and a fixed cost per contiguous run."""
    moving = instruction.bytes / hardware.dma_gbps
    return moving + instruction.descriptors * hardware.descriptor_ns / hardware.dma_queues
