"""``nki.language``: tensors, loops, and the functions that stand for one or a few instructions."""

from __future__ import annotations

import sys
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import index as as_int
from typing import Any, Generic

import numpy as np

from accelopt_profiling.nki.compute.operations import copy_values
from accelopt_profiling.nki.current import grids
from accelopt_profiling.nki.current.runtime_numbers import DynamicSlice, RuntimeNumber, told_gone
from accelopt_profiling.nki.current.tensor import KernelNkiTensor, NkiTensor
from accelopt_profiling.nki.data.instruction import SCALAR, VECTOR
from accelopt_profiling.nki.data.memory_space import SBUF, Buffer, MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current, limits, running_machine
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend import language
from accelopt_profiling.nki.frontend.binding import instruction
from accelopt_profiling.nki.frontend.handle import Handle, handed_out, taken
from accelopt_profiling.nki.frontend.language import data_type_or_none
from accelopt_profiling.nki.frontend.operators import binary, reduce
from accelopt_profiling.nki.instructions.enums import NkiEngine
from accelopt_profiling.nki.instructions.operands import data_type
from accelopt_profiling.nki.operations.table import table
from accelopt_profiling.nki.replay.loop_replay import iterations


class NKIObject:
    """The base of kernels' configuration classes; keywords become attributes."""

    def __init__(self, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)

    def __init_subclass__(cls) -> None:
        """Annotate plain attributes: the compiler takes them for fields of a dataclass as well."""
        super().__init_subclass__()
        foreign = [
            b.__name__ for b in cls.__bases__ if not issubclass(b, NKIObject) and b not in (Generic, ABC)
        ]
        if foreign and running_machine() is not None:
            current().fault(
                "unsupported",
                f"{cls.__name__} inherits from {', '.join(foreign)}; a kernel's class from NKIObject alone.",
            )
        for name, value in list(vars(cls).items()):
            if not name.startswith("_") and not callable(value) and not hasattr(value, "__get__"):
                cls.__annotations__.setdefault(name, Any)


class NkiTileSize(language.TileSize):
    """``nl.tile_size``, with what the current dialect adds."""

    @property
    def psum_bank_fmax(self) -> int:
        return limits().psum_bank_bytes // 4

    @property
    def psum_bank_fmax_bytes(self) -> int:
        return limits().psum_bank_bytes

    @property
    def psum_num_banks(self) -> int:
        return limits().psum_bytes // limits().psum_bank_bytes

    @property
    def sbuf_fmax_bytes(self) -> int:
        return limits().sbuf_bytes

    @property
    def sbuf_fmax(self) -> int:
        return limits().sbuf_bytes // 4

    @property
    def sbuf_size_bytes(self) -> int:
        return limits().sbuf_bytes * limits().partitions


def create(shape: Any, dtype: Any, buffer: Any, name: str, fill: Any) -> Tile:
    machine = current()
    if not isinstance(shape, (tuple, list)):
        shape = (shape,)
    place = SBUF if buffer is None or buffer is Ellipsis else buffer
    if not isinstance(place, Buffer):
        machine.fault(
            "unsupported", f"buffer={buffer!r}: write nl.sbuf, nl.psum, nl.shared_hbm or nl.private_hbm."
        )
    try:
        sizes = tuple(as_int(n) for n in shape)
    except TypeError:
        machine.fault("unsupported", f"The shape {shape} is not made of whole numbers.")
    if any(n < 1 for n in sizes):
        machine.fault("out-of-bounds", f"The shape {sizes} has no elements.")
    kind = data_type(dtype)
    if kind.kind in "iu" and isinstance(fill, (float, np.floating)) and fill != int(fill):
        machine.fault("unsupported", f"{fill} is no value of {kind.name}.")
    if place.shared and fill is None:
        return machine.memory.shared(sizes, kind, name)
    tile = machine.memory.allocate(sizes, kind, place.memory, name, machine.number(fill))
    tile.block.info.shared = place.shared
    return tile


def ndarray(shape: Any, dtype: Any, buffer: Any = None, name: str = "", address: Any = None) -> Any:
    """Return a new tensor, unwritten; in SBUF where no buffer is named. An ``address`` is checked alone."""
    machine = current()
    tile = language.ndarray(shape, dtype, buffer, name)
    if address is not None:
        _check_address(machine, tile, address)
    return tile


def _check_address(machine: Machine, tile: Tile, address: Any) -> None:
    """Check that a tensor on the chip at (partition, byte) lies inside of its memory."""
    sizes = {MemorySpace.SBUF: machine.limits.sbuf_bytes, MemorySpace.PSUM: machine.limits.psum_bytes}
    info = tile.block.info
    if not isinstance(address, (tuple, list)) or len(address) != 2 or info.memory not in sizes:
        machine.fault(
            "unsupported", "An address is (partition_offset, free_offset), of a tensor on the chip."
        )
    partition, byte = map(as_int, address)
    if partition < 0 or byte < 0 or partition + info.shape[0] > machine.limits.partitions:
        machine.fault(
            "capacity",
            f"{info.shape[0]} partitions from {partition} on; there are {machine.limits.partitions}.",
        )
    if byte + info.free_bytes > sizes[info.memory]:
        machine.fault(
            "capacity",
            f"{info.free_bytes:,} B of each partition from byte {byte:,} on; {info.memory.value.upper()} has "
            f"{sizes[info.memory]:,}.",
        )


def shared_constant(constant: Any, dtype: Any = None) -> Tile:
    """Return a constant tensor in shared HBM: of an array, or of a file that ``np.save`` wrote."""
    tile = language.shared_constant(constant, dtype)
    kinds = table()["values"]["constants"].split()
    if tile.dtype.name not in kinds:
        current().fault(
            "unsupported", f"A constant of {tile.dtype.name}; AWS's page names {', '.join(kinds)}."
        )
    return tile


def zeros_like(x: Tile, dtype: Any = None, buffer: Any = None, name: str = "") -> Tile:
    return create(x.shape, dtype or x.dtype, buffer or SBUF, name, 0)


def empty_like(x: Tile, dtype: Any = None, buffer: Any = None, name: str = "") -> Tile:
    return create(x.shape, dtype or x.dtype, buffer or x.buffer, name, None)


def shared_identity_matrix(n: int, dtype: Any = np.uint8, dst: Any = None) -> Tile:
    """Return the identity matrix in SBUF, or write it to ``dst``; it comes from HBM by DMA."""
    tile: Tile = create((n, n), dtype, None, "", None) if dst is None else dst
    instruction("current", "dma_copy")(tile, language.shared_constant(np.eye(n, dtype=tile.dtype)))
    return tile


# Loops and the grid


def _loop_range(name: str) -> Callable[..., Iterable[Any]]:
    """Return one of the names for ``range``, which newer versions advise against. ``affine_range`` promises that its
    iterations may take any order.
    """

    def counters(start: Any, stop: Any = None, step: Any = 1) -> Iterable[Any]:
        """One of the names for ``range``, which newer versions advise against. Its loop may be predicted."""
        machine = current()
        told_gone(machine, f"nki.language.{name}", f"nl.{name}")
        first, end = (0, start) if stop is None else (start, stop)
        try:
            numbers = range(as_int(first), as_int(end), as_int(step))
        except (TypeError, ValueError) as error:
            machine.fault("unsupported", f"nl.{name} takes whole numbers that the compiler knows: {error}.")
        free = machine.in_any_order(numbers) if name == "affine_range" else None
        return free or iterations(numbers, sys._getframe(1))

    return counters


affine_range, sequential_range, static_range = map(
    _loop_range, ("affine_range", "sequential_range", "static_range")
)


def ds(start: Any, size: int) -> Any:
    """Return a slice of ``size`` elements from ``start``, which may be a number of the device."""
    if isinstance(start, Handle):
        number = taken(start)
        if not isinstance(number, RuntimeNumber):
            current().fault(
                "unsupported", "nl.ds starts at a whole number or a register; load a tensor's into one."
            )
        return handed_out(DynamicSlice(number, as_int(size)))
    return slice(start, start + size)


def program_ndim() -> int:
    machine = current()
    return len(machine.grid) if machine.launched_on_a_grid else 0


@contextmanager
def no_reorder() -> Iterator[None]:
    """Let the instructions inside keep their order, as all do here; loops of the device have no place there."""
    machine = current()
    machine.ordered += 1
    try:
        yield
    finally:
        machine.ordered -= 1


def device_print(print_prefix: Any, tensor: Tile) -> None:
    """Do nothing: there is no device to print from."""
    if not isinstance(print_prefix, str):
        current().fault("unsupported", f"device_print's prefix is a constant string, not {print_prefix!r}.")


# Functions that stand for instructions


def copy(x: Tile, dtype: Any = None) -> Tile:
    return current().run("tensor_copy", (VECTOR, SCALAR), [x], copy_values, data_type_or_none(dtype))


def matmul(x: Tile, y: Tile, transpose_x: bool = False) -> Tile:
    """``x.T @ y`` into PSUM; without ``transpose_x`` ``x @ y``, with a transpose of x on TensorE before."""
    machine = current()
    if not transpose_x:
        machine.diagnostics.report(
            "contradiction",
            "nl.matmul without transpose_x=True transposes x first, as its page says; the known issues of NKI 0.4 say "
            "that it fails.",
            "information",
        )
        x = copy(transpose(x))
    left, right = machine.operand(x), machine.operand(y)
    rows, columns = left.size // left.shape[0], right.size // right.shape[0]
    dst = machine.memory.allocate((rows, columns), np.dtype(np.float32), MemorySpace.PSUM)
    instruction("current", "nc_matmul")(dst, left, right)
    return dst


def transpose(x: Tile, dtype: Any = None) -> Tile:
    """Swap the two dimensions of a tile through TensorE; the result lies in PSUM."""
    machine = current()
    tile = machine.operand(x)
    if len(tile.shape) != 2:
        machine.fault("unsupported", f"nl.transpose takes a tile of two dimensions, not {tile.shape}.")
    dst = machine.memory.allocate((tile.size // tile.shape[0], tile.shape[0]), tile.dtype, MemorySpace.PSUM)
    instruction("current", "nc_transpose")(dst, tile, NkiEngine.tensor)
    return dst if data_type_or_none(dtype) in (None, tile.dtype) else copy(dst, dtype)


def broadcast_to(x: Tile, shape: Sequence[int], dtype: Any = None) -> Tile:
    """Repeat along free dimensions, as a view, and over partitions, by TensorE; in another type by a copy."""
    result, kind = current().broadcast(x, shape), data_type_or_none(dtype)
    if kind in (None, result.dtype):
        return result
    return copy(result, kind)


def expand_dims(x: Tile, axis: int) -> Tile:
    """Add a dimension of size 1; on the chip dimension 0 stays the partitions."""
    if axis in (0, -len(x.shape) - 1) and x.block.info.memory is not MemorySpace.HBM:
        current().fault("unsupported", "On the chip dimension 0 is the partitions: nothing comes before it.")
    return language.expand_dims(x, axis)


def gather_flattened(data: Tile, indices: Tile, axis: Any = None, dtype: Any = None) -> Tile:
    """Gather ``data[p, indices[p, i]]`` within each partition, on GpSimdE."""
    dst = current().memory.allocate(indices.shape, data.dtype, MemorySpace.SBUF)
    instruction("current", "nc_n_gather")(dst, data, indices)
    return dst if data_type_or_none(dtype) in (None, data.dtype) else copy(dst, dtype)


def softmax(x: Tile, axis: Any = -1, dtype: Any = None) -> Any:
    """Compute the softmax along free dimensions: maximum, exponential, sum, reciprocal, multiply."""
    machine = current()
    peak = reduce("max", x, axis, None, None, True)
    centred = binary(machine, "subtract", x, peak, np.float32)
    powers = machine.run("activation", (SCALAR,), [centred], np.exp)
    total = reduce("add", powers, axis, None, None, True)
    share = machine.run("reciprocal", (VECTOR,), [total], np.reciprocal)
    return binary(machine, "multiply", powers, share, dtype or x.dtype)


def _is(memory: MemorySpace) -> Any:
    return lambda buffer: isinstance(buffer, Buffer) and buffer.memory is memory


is_sbuf, is_psum, is_hbm = map(_is, (MemorySpace.SBUF, MemorySpace.PSUM, MemorySpace.HBM))


def is_on_chip(buffer: Any) -> bool:
    """Return True if a buffer is SBUF or PSUM."""
    return isinstance(buffer, Buffer) and buffer.memory is not MemorySpace.HBM


def operators(name: str, *operands: Any) -> Tile:
    """Refuse Python's operators on tensors: this dialect has ``astype`` alone."""
    if name == "astype":
        return copy(operands[0], operands[1])
    return current().fault(
        "unsupported",
        f"Tensors have no operator for {name!r}; use nl.{name} or a nisa instruction with a dst.",
    )


def prepare(machine: Machine, version: str) -> None:
    """Make ``machine`` one of this dialect."""
    machine.memory.tile_class, machine.version = NkiTensor, version
    machine.operators, machine.create = operators, create
    machine.trace.dialect = "current"


def constants() -> dict[str, Any]:
    """Return what of the module is no function."""
    return {
        **language.constants(), "tile_size": NkiTileSize(), "range": range, "NKIObject": NKIObject,
        "MemoryRegion": Buffer, "NkiTensor": KernelNkiTensor, "tensor": KernelNkiTensor, "NkiGrid": grids.KernelGrid,
        "NkiTileGrid": grids.KernelTileGrid, "NkiBlockGrid": grids.KernelBlockGrid,
    }  # fmt: skip
