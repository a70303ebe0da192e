"""``nl``: the names that mean the same in both dialects."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.dtypes import NAMES, MissingTypeError, dtype_named
from accelopt_profiling.nki.data.instruction import VECTOR
from accelopt_profiling.nki.data.memory_space import HBM, PRIVATE_HBM, PSUM, SBUF, SHARED_HBM
from accelopt_profiling.nki.emulator.machine import current, limits
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.operands import data_type


class TileSize:
    """``nl.tile_size``: what the target's engines take at once."""

    @property
    def pmax(self) -> int:
        return limits().partitions

    @property
    def gemm_stationary_fmax(self) -> int:
        return limits().stationary_columns

    @property
    def gemm_moving_fmax(self) -> int:
        return limits().moving_columns

    @property
    def psum_fmax(self) -> int:
        return limits().psum_bank_bytes // 4

    @property
    def total_available_sbuf_size(self) -> int:
        """Bytes of SBUF per partition, despite its name."""
        return limits().sbuf_bytes

    bn_stats_fmax = 512
    psum_min_align = 4
    sbuf_min_align = 1


class Fp32:
    """``nl.fp32``: the least and the largest number."""

    min = float(np.finfo(np.float32).min)
    max = float(np.finfo(np.float32).max)


def load(src: Any, dtype: Any, mask: Any = None) -> Tile:
    """Bring a tensor from HBM to a new tile in SBUF."""
    return current().transfers.load(src, data_type_or_none(dtype), mask)


def store(dst: Any, value: Any, mask: Any = None) -> None:
    """Write a tile to HBM."""
    current().transfers.store(dst, value, mask)


def load_transpose2d(src: Any, dtype: Any, mask: Any = None) -> Tile:
    """Bring a tile from HBM to SBUF with its two dimensions swapped: a DMA of single elements."""
    machine = current()
    tile = machine.operand(src)
    if len(tile.dims) != 2:
        machine.fault("unsupported", "nl.load_transpose2d takes a tensor of two dimensions.")
    swapped = tile.strided(tile.offset, (tile.dims[1], tile.dims[0]))
    machine.check_range(tile, None)
    if mask is not None or tile.out_of_range:
        machine.fault("unsupported", "nl.load_transpose2d with a mask is not emulated.")
    result = machine.transfers.load(swapped, data_type_or_none(dtype), None)
    assert result.producer is not None
    result.producer.transpose = True
    return result


def data_type_or_none(value: Any) -> np.dtype[Any] | None:
    """Return ``data_type`` of what may be left out."""
    return None if value is None else data_type(value)


def ndarray(shape: Any, dtype: Any, buffer: Any, name: str) -> Any:
    """Return a new tensor, unwritten. Default buffer: SBUF. Dimension 0 of an on-chip tensor is its partitions."""
    return current().create(shape, dtype, buffer, name, None)


def zeros(shape: Any, dtype: Any, buffer: Any, name: str) -> Any:
    return current().create(shape, dtype, buffer, name, 0)


def ones(shape: Any, dtype: Any, buffer: Any, name: str) -> Any:
    return current().create(shape, dtype, buffer, name, 1)


def full(shape: Any, fill_value: Any, dtype: Any, buffer: Any, name: str) -> Any:
    return current().create(shape, dtype, buffer, name, fill_value)


def shared_constant(constant: Any, dtype: Any = None) -> Tile:
    """Return a constant tensor in HBM: of an array, or of a file that ``np.save`` wrote."""
    array = np.load(constant) if isinstance(constant, (str, PathLike)) else np.asarray(constant)
    return current().argument(array if dtype is None else array.astype(data_type(dtype)))


def ds(start: Any, size: int) -> slice:
    """Return a slice of ``size`` elements from ``start``."""
    return slice(start, start + size)


def expand_dims(data: Tile, axis: int) -> Tile:
    """Add a dimension of size 1."""
    if not -len(data.shape) - 1 <= axis <= len(data.shape):
        current().fault("out-of-bounds", f"No dimension can be put at {axis} of shape {data.shape}.")
    key: list[Any] = [slice(None)] * len(data.shape)
    key.insert(axis if axis >= 0 else len(key) + 1 + axis, None)
    return data[tuple(key)]


def where(condition: Any, x: Any, y: Any, dtype: Any, mask: Any = None) -> Tile:
    """Return ``x`` where ``condition`` is not zero, else ``y``; in the type of the first of the two that is a tile."""
    first = next((o for o in (x, y) if isinstance(o, Tile)), None)
    kind = first.dtype if dtype is None and first is not None else data_type_or_none(dtype)
    return current().run("select", (VECTOR,), [condition, x, y], _choose, kind, mask)


def _choose(condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition != 0, x, y)


def finfo(dtype: Any) -> Any:
    """Return the limits of a floating-point type, as ``np.finfo`` does."""
    kind = data_type(dtype)
    if kind.kind == "f":
        return np.finfo(kind)
    import ml_dtypes

    return ml_dtypes.finfo(kind)


def program_id(axis: int = 0) -> int:
    return current().program[axis]


def num_programs(axes: Any = 0) -> Any:
    grid = current().grid
    return tuple(grid[a] for a in axes) if isinstance(axes, (tuple, list)) else grid[axes]


def device_print() -> None:
    """Do nothing: there is no device to print from."""


def constants() -> dict[str, Any]:
    """Return data types and buffers by name."""
    table: dict[str, Any] = {}
    for name in NAMES:
        try:
            table[name] = dtype_named(name)
        except MissingTypeError:
            table[name] = name
    table.update(
        sbuf=SBUF, psum=PSUM, hbm=HBM, private_hbm=PRIVATE_HBM, shared_hbm=SHARED_HBM, fp32=Fp32,
        bool=dtype_named("bool_"),
    )  # fmt: skip
    return table
