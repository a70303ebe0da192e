"""What the hardware does not allow: partition limits, bank sizes, matrix sizes, operand placement."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from accelopt_profiling.nki.data.instruction import Memory

if TYPE_CHECKING:
    from accelopt_profiling.nki.emulator.memory import Chip
    from accelopt_profiling.nki.emulator.tile import Tile


@dataclass(frozen=True)
class Limits:
    """Sizes of one NeuronCore, in bytes per partition or elements; read from ``targets/*.json`` ("limits").

    The defaults are those of NeuronCore-v2 (NKI architecture guide).
    """

    partitions: int = 128
    sbuf_bytes: int = 192 << 10
    psum_bytes: int = 16 << 10
    psum_bank_bytes: int = 2 << 10
    stationary_columns: int = 128
    moving_columns: int = 512

    @property
    def generation(self) -> int:
        """2, 3 or 4, for NeuronCore-v2 (trn1), v3 (trn2), v4 (trn3): told apart by the size of their SBUF."""
        return 2 if self.sbuf_bytes <= 192 << 10 else 3 if self.sbuf_bytes <= 224 << 10 else 4


def check_block(machine: Chip, shape: tuple[int, ...], itemsize: int, memory: Memory) -> None:
    """A tile must fit its partitions, and the SBUF or the PSUM bank it lies in.

    Raises:
        KernelFault: it has no shape that the hardware can address.
    """
    limits = machine.limits
    if shape and shape[0] > limits.partitions:
        message = f"The partition dimension is {shape[0]}; {memory.value.upper()} has {limits.partitions} partitions."
        machine.fault("capacity", f"{message} Split the tile.")
    size = prod(shape[1:]) * itemsize
    if memory is Memory.PSUM and size > limits.psum_bytes:
        message = f"A tile of {size:,} B per partition; PSUM has {limits.psum_bytes:,} B per partition."
        machine.fault(
            "capacity",
            f"{message} Use free dimensions of at most {limits.psum_bank_bytes // 4} float32 values.",
        )
    if memory is Memory.SBUF and size > limits.sbuf_bytes:
        message = f"A tile of {size:,} B per partition; SBUF has {limits.sbuf_bytes:,} B per partition."
        machine.fault("capacity", f"{message} Split its free dimension.")


def check_operand(machine: Chip, tile: Tile, opcode: str) -> None:
    """Compute engines read SBUF and PSUM only.

    Raises:
        KernelFault: the operand lies in HBM.
    """
    if tile.block.place.memory is Memory.HBM:
        machine.fault(
            "unsupported", f"{opcode} cannot read HBM; bring the operand to SBUF with nl.load first."
        )


def check_matmul(machine: Chip, stationary: Tile, moving: Tile) -> None:
    """``nc_matmul``: stationary [K, M] and moving [K, N] with K <= 128, M <= 128, N <= 512, and one PSUM bank.

    Raises:
        KernelFault: TensorE has no such product.
    """
    key = (stationary.shape, moving.shape, stationary.block.place.memory, moving.block.place.memory)
    if key in machine.checked:
        return
    limits = machine.limits
    (k, m), (other, n) = _matrix(stationary), _matrix(moving)
    if k != other:
        machine.fault(
            "out-of-bounds", f"nc_matmul contracts over partitions: stationary has {k}, moving has {other}."
        )
    if m > limits.stationary_columns:
        message = f"nc_matmul's stationary operand has {m} columns; TensorE takes at most {limits.stationary_columns}."
        machine.fault("capacity", message)
    if n > limits.moving_columns:
        message = (
            f"nc_matmul's moving operand has {n} columns; TensorE takes at most {limits.moving_columns}."
        )
        machine.fault("capacity", message)
    for operand, what in ((stationary, "stationary"), (moving, "moving")):
        if operand.block.place.memory is Memory.PSUM:
            machine.fault("unsupported", f"nc_matmul's {what} operand lies in PSUM; copy it to SBUF first.")
    machine.checked.add(key)


def check_bank(machine: Chip, target: Tile) -> None:
    """A product is written within one PSUM bank.

    Raises:
        KernelFault: it is larger than a bank.
    """
    size = prod(target.shape[1:]) * target.dtype.itemsize
    if size > machine.limits.psum_bank_bytes:
        machine.fault(
            "capacity",
            f"A product of {size:,} B per partition; a PSUM bank has {machine.limits.psum_bank_bytes:,} B.",
        )


def check_not_both_psum(machine: Chip, a: Tile, b: Tile, opcode: str) -> None:
    """VectorE reads at most one of two operands from PSUM.

    Raises:
        KernelFault: both lie there.
    """
    if a.block.place.memory is Memory.PSUM and b.block.place.memory is Memory.PSUM:
        machine.fault("unsupported", f"{opcode} reads at most one operand from PSUM; copy the other to SBUF.")


def _matrix(tile: Tile) -> tuple[int, int]:
    return tile.shape[0], prod(tile.shape[1:])


def descriptors(dram: Tile) -> int:
    """The number of contiguous pieces of HBM that a transfer of the view touches; at least one per partition."""
    if dram.positions is not None:
        return dram.size
    run = 1
    for num, step in reversed(dram.dims):
        if num > 1:
            if step != run:
                break
            run *= num
    pieces = dram.size // max(1, run)
    return max(pieces, dram.shape[0] if dram.shape else 1)
