"""Checks what the hardware does not allow: partition limits, bank sizes, matrix sizes, operands in the wrong memory."""

from __future__ import annotations

from math import prod
from typing import Any

from accelopt_profiling.nki.data.memory_space import CoreLimits, MemorySpace
from accelopt_profiling.nki.emulator.diagnostics import Diagnostics
from accelopt_profiling.nki.emulator.tile import Tile


class HardwareRules:
    """The rules of one NeuronCore. Every check raises ``KernelFaultError`` where its rule is broken."""

    def __init__(self, limits: CoreLimits, diagnostics: Diagnostics) -> None:
        self.limits = limits
        self._fault = diagnostics.fault
        self._passed: set[Any] = set()  # checks that passed: kernels repeat themselves

    def check_block(self, shape: tuple[int, ...], itemsize: int, memory: MemorySpace) -> None:
        """Check that an on-chip tile fits the partitions, and the SBUF or PSUM that it lies in."""
        key = (shape, itemsize, memory)
        if key in self._passed:
            return
        limits = self.limits
        if shape and shape[0] > limits.partitions:
            message = f"The partition dimension is {shape[0]}; {memory.value.upper()} has {limits.partitions}"
            self._fault("capacity", f"{message} partitions. Split the tile.")
        size = prod(shape[1:]) * itemsize
        if memory is MemorySpace.PSUM and size > limits.psum_bytes:
            message = f"A tile of {size:,} B per partition; PSUM has {limits.psum_bytes:,} B per partition."
            self._fault(
                "capacity",
                f"{message} Use free dimensions of at most {limits.psum_bank_bytes // 4} float32 values.",
            )
        if memory is MemorySpace.SBUF and size > limits.sbuf_bytes:
            message = f"A tile of {size:,} B per partition; SBUF has {limits.sbuf_bytes:,} B per partition."
            self._fault("capacity", f"{message} Split its free dimension.")
        self._passed.add(key)

    def check_operand(self, tile: Tile, opcode: str) -> None:
        """Compute engines read SBUF and PSUM only, not HBM."""
        if tile.block.info.memory is MemorySpace.HBM:
            self._fault(
                "unsupported", f"{opcode} cannot read HBM; bring the operand to SBUF with nl.load first."
            )

    def check_matmul(self, stationary: Tile, moving: Tile, itemsize: int) -> None:
        """``nc_matmul``: stationary [K, M] and moving [K, N] in SBUF, with K <= 128, M <= 128, N <= 512; from trn3 on
        as many as the product's elements, of ``itemsize`` bytes, fill PSUM."""
        key = (
            stationary.shape,
            moving.shape,
            stationary.block.info.memory,
            moving.block.info.memory,
            itemsize,
        )
        if key in self._passed:
            return
        limits = self.limits
        (k, m), (other, n) = _matrix(stationary), _matrix(moving)
        if k != other:
            self._fault(
                "out-of-bounds",
                f"nc_matmul contracts over partitions: stationary has {k}, moving has {other}.",
            )
        if m > limits.stationary_columns:
            message = f"nc_matmul's stationary operand has {m} columns; TensorE takes"
            self._fault("capacity", f"{message} at most {limits.stationary_columns}.")
        columns = limits.moving_columns if limits.generation < 4 else limits.psum_bytes // itemsize
        if n > columns:
            self._fault(
                "capacity", f"nc_matmul's moving operand has {n} columns; TensorE takes at most {columns}."
            )
        for operand, what in ((stationary, "stationary"), (moving, "moving")):
            if operand.block.info.memory is MemorySpace.PSUM:
                self._fault("unsupported", f"nc_matmul's {what} operand lies in PSUM; copy it to SBUF first.")
        self._passed.add(key)

    def check_bank(self, target: Tile) -> None:
        """Check that a product is written within one PSUM bank; from trn3 on it may fill them all."""
        size = prod(target.shape[1:]) * target.dtype.itemsize
        if self.limits.generation < 4 and size > self.limits.psum_bank_bytes:
            self._fault(
                "capacity",
                f"A product of {size:,} B per partition; a PSUM bank has {self.limits.psum_bank_bytes:,} B.",
            )

    def check_not_both_psum(self, a: Tile, b: Tile, opcode: str) -> None:
        """Check that VectorE reads at most one of two operands from PSUM."""
        if a.block.info.memory is MemorySpace.PSUM and b.block.info.memory is MemorySpace.PSUM:
            self._fault(
                "unsupported", f"{opcode} reads at most one operand from PSUM; copy the other to SBUF."
            )


def _matrix(tile: Tile) -> tuple[int, int]:
    return tile.shape[0], prod(tile.shape[1:])
