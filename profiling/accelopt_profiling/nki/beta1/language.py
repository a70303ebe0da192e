"""``neuronxcc.nki.language``: tensors, loops, indices, data movement and tile functions."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from math import prod
from operator import index as as_int
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import BINARY, copy_values, operation_name
from accelopt_profiling.nki.data import loop_counter as counter
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.index import Affine, arange
from accelopt_profiling.nki.data.instruction import SCALAR, VECTOR
from accelopt_profiling.nki.data.memory_space import BUFFERS, PSUM, SBUF, SHARED_HBM, Buffer, MemorySpace
from accelopt_profiling.nki.emulator.assignment import LoopReduction
from accelopt_profiling.nki.emulator.block_array import BlockArray, TileKind
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend import language
from accelopt_profiling.nki.frontend.binding import instruction
from accelopt_profiling.nki.frontend.handle import KernelTensor
from accelopt_profiling.nki.frontend.language import data_type_or_none
from accelopt_profiling.nki.frontend.operators import binary, reduce
from accelopt_profiling.nki.instructions.allocation import Allocation
from accelopt_profiling.nki.instructions.matrix import nc_matmul, nc_transpose
from accelopt_profiling.nki.instructions.operands import data_type
from accelopt_profiling.nki.replay.loop_replay import iterations


class ParDim(int):
    """The size of the partition dimension; dimensions before it are block dimensions."""


def create(shape: Any, dtype: Any, buffer: Any, name: str, fill: Any) -> Any:
    machine = current()
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    place = BUFFERS.get(buffer) if isinstance(buffer, str) else buffer
    if place is None:
        place = SBUF
    if not isinstance(place, Buffer):
        machine.fault("unsupported", f"The buffer {buffer!r} is not nl.sbuf, nl.psum or an HBM buffer.")
    kind, fill = data_type(dtype), machine.number(counter.plain(fill))
    plain = tuple(int(n) for n in sizes)
    if place.memory is MemorySpace.HBM:
        if place.shared and fill is None:
            return machine.memory.shared(plain, kind, name)
        return machine.memory.allocate(plain, kind, MemorySpace.HBM, name, fill)
    rank = next((at for at, n in enumerate(sizes) if isinstance(n, ParDim)), 0)
    if rank:
        tile = TileKind(plain[rank:], kind, place.memory, name, fill, machine.diagnostics.line())
        return BlockArray(machine.memory, plain[:rank], tile)
    if len(plain) < 2:
        plain = (*plain, 1)
    return machine.memory.allocate(plain, kind, place.memory, name, fill)


def zeros_like(a: Any, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Any:
    return create(a.shape, dtype or a.dtype, buffer or _buffer_of(a), name, 0)


def empty_like(a: Any, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Any:
    return create(a.shape, dtype or a.dtype, buffer or _buffer_of(a), name, None)


def _buffer_of(a: Any) -> Buffer:
    return {MemorySpace.SBUF: SBUF, MemorySpace.PSUM: PSUM, MemorySpace.HBM: SHARED_HBM}[a.buffer]


def shared_identity_matrix(n: int, dtype: Any = np.uint8) -> Tile:
    """Return the identity matrix as a constant in HBM."""
    return language.shared_constant(np.eye(n, dtype=data_type(dtype)))


def rand(shape: Any, dtype: Any = np.float32) -> Tile:
    """Return random numbers from 0 to 1, the same in every run."""
    machine = current()
    tile = machine.fresh_tile(tuple(int(n) for n in shape), data_type(dtype), MemorySpace.SBUF)
    tile.producer = machine.stream.emit("rand", (VECTOR,), tile)
    tile.step = machine.defer(_random, params=(machine.stream.issued, tile.shape))
    machine.write(tile, tile.step)
    tile.producer.writes.append(tile.region())
    return tile


def _random(seed: int, shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(seed).random(shape, np.float32)


def nc(count: int) -> int:
    """Return a number of physical cores, in the size of a launch: which core runs a program is not modelled."""
    return int(count)


def spmd_dim(*sizes: int) -> int:
    """Return a dimension of a launch that is divided among cores: the product of its sizes."""
    return prod(int(n) for n in sizes)


# Indices and loops


class _Grid(tuple[Affine, ...]):
    """The result of ``nl.mgrid``: a tuple of indices, in order also ``.p``, ``.x``, ``.y``, ``.z`` and ``.w``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Affine:
        at = "pxyzw".find(name) if len(name) == 1 else -1
        if not 0 <= at < len(self):
            raise AttributeError(f"an index over {len(self)} dimensions has no {name!r}")
        return self[at]


class MGrid:
    """``nl.mgrid[0:128, 0:512]``: one open index per dimension."""

    def __getitem__(self, key: Any) -> _Grid:
        slices = key if isinstance(key, tuple) else (key,)
        rank = len(slices)
        indices = []
        for axis, part in enumerate(slices):
            line = arange(as_int(part.start or 0), as_int(part.stop), as_int(part.step or 1))
            dims = tuple(line.dims[0] if d == axis else (1, 0) for d in range(rank))
            indices.append(Affine(line.offset, dims))
        return _Grid(indices)


def nl_arange(*bounds: int) -> Affine:
    """Return the positions 0..n-1, or start..stop-1."""
    if len(bounds) == 1 and type(bounds[0]) is int:
        return arange(0, bounds[0])
    numbers = [as_int(b) for b in bounds]
    return arange(0, numbers[0]) if len(numbers) == 1 else arange(*numbers)


def affine_range(*bounds: Any, **hints: Any) -> Iterable[Any]:
    """Return the iterations of a loop that promises to take any order; ``hints`` are for the compiler alone."""
    numbers = range(*(as_int(b) for b in bounds))
    return current().in_any_order(numbers) or iterations(numbers, sys._getframe(1))


def sequential_range(*bounds: Any, **hints: Any) -> Iterable[Any]:
    """Return the iterations of a loop; ``hints`` are for the compiler alone."""
    return iterations(range(*(as_int(b) for b in bounds)), sys._getframe(1))


# Data movement


def copy(src: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Copy a tile on the chip; the compiler runs it on ScalarE."""
    return current().run("tensor_copy", (SCALAR, VECTOR), [src], copy_values, data_type_or_none(dtype), mask)


def broadcast_to(src: Any, *, shape: Any) -> Tile:
    return current().broadcast(src, shape)


def loop_reduce(x: Any, op: Any, loop_indices: Any, *, mask: Any = None, dtype: Any = None) -> Any:
    """Combine a tile over loops into the place it is assigned to; the first iteration sets the place."""
    machine = current()
    name = operation_name(op)
    if name not in BINARY:
        machine.fault("unsupported", f"loop_reduce with {name!r}; use add, multiply, max or min.")
    indices = loop_indices if isinstance(loop_indices, (list, tuple)) else [loop_indices]
    return LoopReduction(machine.operand(x), name, all(i == 0 for i in indices))


# Computation


def matmul(x: Any, y: Any, *, transpose_x: bool = False, mask: Any = None) -> Tile:
    """``x @ y``. Without ``transpose_x`` TensorE transposes ``x`` first, and a copy brings it back to SBUF."""
    machine = current()
    left = machine.operand(x)
    if not transpose_x:
        turned = nc_transpose(Allocation(None), left, None)
        left = machine.run("tensor_copy", (SCALAR, VECTOR), [turned], copy_values, left.dtype)
    return nc_matmul(
        Allocation(None, mask), left, y, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False,
        accumulate=None, perf_mode=None,
    )  # fmt: skip


def transpose(x: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Swap the two dimensions of a tile through TensorE; the result lies in PSUM."""
    return nc_transpose(Allocation(data_type_or_none(dtype), mask), x, None)


def softmax(
    x: Any, axis: Any = -1, *, dtype: Any = None, compute_dtype: Any = None, mask: Any = None
) -> Tile:
    """Compute the softmax along free dimensions: maximum, exponential, sum, reciprocal, multiply."""
    machine = current()
    peak = reduce("max", x, axis, None, mask, True, negate=True)
    powers = instruction("beta1", "activation")("exp", x, bias=peak)
    total = reduce("add", powers, axis, None, None, True)
    result = binary(
        machine, "multiply", powers, instruction("beta1", "reciprocal")(total), dtype or compute_dtype
    )
    assert isinstance(result, Tile)
    return result


def static_cast(input_data: Any, dtype: Any) -> Tile:
    return current().run("tensor_copy", (VECTOR, SCALAR), [input_data], copy_values, data_type(dtype))


def program_ndim() -> int:
    return len(current().grid)


def operators(name: str, *operands: Any) -> Tile:
    """Python's operators on tiles."""
    machine = current()
    if name == "astype":
        return static_cast(operands[0], operands[1])
    if name == "negative":
        return machine.run("tensor_scalar", (VECTOR, SCALAR), list(operands), np.negative)
    result = binary(machine, name, *operands)
    assert isinstance(result, Tile)
    return result


def constants() -> dict[str, Any]:
    """Return what of the module is no function."""
    return {
        **language.constants(),
        "tile_size": language.TileSize(),
        "mgrid": MGrid(),
        "tensor": KernelTensor,
    }
