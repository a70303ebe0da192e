"""``nki.isa``: products of microscaling types, and what quantizes to them, on NeuronCore-v4.

A group of 32 values, 8 partitions by the 4 of one packed element, has one scale, a power of two. That of group ``g``
of a column lies in partition ``g // 4 * 32 + g % 4``: in the quadrant of its values (AWS, "MXFP Matrix Multiplication
with NKI"; the formula of the scale is that of ``nki.isa.quantize_mx``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.dtypes import PACKED, dtype_named, packed_values
from accelopt_profiling.nki.data.instruction import TENSOR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.matrix import check_accumulation, check_tiling
from accelopt_profiling.nki.instructions.operands import into, on_chip, per_partition

_GROUP, _QUADRANT, _BIAS = 8, 32, 127
#: The largest exponent of what is quantized to.
_MOST = {"float8_e4m3fn_x4": 8, "float8_e5m2_x4": 15}


def quantize_mx(dst: Any, src: Any, dst_scale: Any) -> Any:
    """Write ``src`` over its scales to ``dst``, four values in each element, and the scales to ``dst_scale``."""
    machine = current()
    source, target = on_chip(machine, src, "src"), on_chip(machine, dst, "dst")
    scale = on_chip(machine, dst_scale, "dst_scale")
    kind = next((n for n in _MOST if target.dtype == dtype_named(n)), None)
    if kind is None:
        machine.fault("unsupported", "quantize_mx writes float8_e4m3fn_x4 or float8_e5m2_x4.")
    if source.dtype not in (np.float16, dtype_named("bfloat16")):
        machine.fault("unsupported", f"quantize_mx reads float16 or bfloat16, not {source.dtype}.")
    rows, columns = per_partition(machine, target)
    if rows % _QUADRANT or per_partition(machine, source) != (rows, 4 * columns):
        machine.fault(
            "out-of-bounds",
            f"src is {source.shape} and dst {target.shape}: the partitions agree and are a multiple of 32, src has "
            "four elements for each of dst.",
        )
    most = _MOST[kind]
    parts = _scale_parts(machine, scale, rows, columns)
    result = into(
        machine, dst, "quantize_mx", (VECTOR,), [source], _quantized, most, target.dtype, cost=source
    )
    for quadrant, part in enumerate(parts):
        step = machine.defer(_scales, source, params=(most, quadrant, scale.dtype))
        if result.producer is not None:
            result.producer.writes.append(part.region())
        machine.write(part, step)


def _exponents(most: int, x: Array) -> Array:
    """Return the exponent of the scale of each group of a tile, [groups, columns]."""
    groups = np.abs(x.reshape(x.shape[0] // _GROUP, _GROUP, -1, 4)).max(axis=(1, 3))
    with np.errstate(divide="ignore"):
        exponent = np.frexp(groups)[1] - 1 - (most - 1)
    return np.where(groups > 0, np.clip(exponent, -_BIAS, _BIAS), -_BIAS)


def _quantized(most: int, dtype: np.dtype[Any], x: Array) -> Array:
    shift = np.repeat(_exponents(most, x), _GROUP, axis=0)[:, :, None]
    values = np.ldexp(x.reshape(x.shape[0], -1, 4), -shift)
    packed = np.empty(values.shape[:2], dtype)
    packed["x4"] = values.astype(dtype["x4"].base)
    return packed


def _scales(most: int, quadrant: int, dtype: np.dtype[Any], x: Array) -> Array:
    """Return the scales of a quadrant as the bytes that hold them."""
    return (_exponents(most, x)[4 * quadrant : 4 * quadrant + 4] + _BIAS).astype(np.uint8).view(dtype)


def nc_matmul_mx(
    dst: Any, stationary: Any, moving: Any, stationary_scale: Any, moving_scale: Any, tile_position: Any,
    tile_size: Any, accumulate: bool | None,
) -> Any:  # fmt: skip
    """``dst = stationary.T @ moving`` over partitions and the four values of each element, times their scales."""
    machine = current()
    target = on_chip(machine, dst, "dst")
    left, right = (
        on_chip(machine, stationary, "stationary operand"),
        on_chip(machine, moving, "moving operand"),
    )
    packed = [dtype_named(n) for n in PACKED]
    for tile, what in ((left, "stationary"), (right, "moving")):
        if tile.dtype not in packed:
            machine.fault(
                "unsupported", f"nc_matmul_mx multiplies {', '.join(PACKED)}; {what} is {tile.dtype}."
            )
        if tile.block.info.memory is not MemorySpace.SBUF:
            machine.fault(
                "unsupported", f"nc_matmul_mx's {what} operand lies in PSUM; copy it to SBUF first."
            )
    if target.block.info.memory is not MemorySpace.PSUM:
        machine.fault("unsupported", "nc_matmul_mx writes to PSUM; allocate dst with buffer=nl.psum.")
    (depth, rows), (other, columns) = per_partition(machine, left), per_partition(machine, right)
    if depth != other or depth % _QUADRANT or rows > machine.limits.stationary_columns or rows % 2:
        machine.fault(
            "out-of-bounds",
            f"stationary has the shape {left.shape}, moving {right.shape}: both have as many partitions, a multiple of "
            f"32, and stationary an even number of columns up to {machine.limits.stationary_columns}.",
        )
    if per_partition(machine, target) != (rows, columns):
        machine.fault("out-of-bounds", f"The product has the shape ({rows}, {columns}), dst {target.shape}.")
    if tile_position or tile_size:
        check_tiling(machine, tile_position, tile_size, (depth, rows))
        if (tile_position[1], tile_size[1]) != (0, 128):
            machine.fault("unsupported", "nc_matmul_mx has tiles of rows only: all 128 columns from 0 on.")
    scales = [
        _scale_parts(machine, on_chip(machine, s, "scale"), depth, n)
        for s, n in ((stationary_scale, rows), (moving_scale, columns))
    ]
    adds = machine.touched(target) if accumulate is None else bool(accumulate)
    check_accumulation(machine, target, accumulate, adds)
    target.block.holds_product = True
    operands = [left, right, *scales[0], *scales[1]]
    result = machine.run_into(target, "nc_matmul", (TENSOR,), operands, _product, right, adds).producer
    assert result is not None
    result.stationary, result.free, result.partitions, result.itemsize = rows, columns, depth, 1
    result.flops = 2 * 4 * depth * rows * columns


def _product(a: Array, b: Array, *scales: Array) -> Array:
    """Return ``a.T @ b``; the first half of the ``scales`` is that of ``a``, by quadrant."""
    half = len(scales) // 2
    one, two = (_real(v.reshape(len(v), -1), s) for v, s in ((a, scales[:half]), (b, scales[half:])))
    result: Array = np.einsum("kmq,knq->mn", one, two, optimize=True)
    return result


def _scale_parts(machine: Machine, scale: Tile, partitions: int, columns: int) -> Sequence[Tile]:
    """Return the scales of each quadrant of a tensor of so many ``partitions``, four partitions each."""
    if scale.dtype not in (np.uint8, dtype_named("float8_e8m0fnu")):
        machine.fault("unsupported", f"Scales are uint8 or float8_e8m0fnu, not {scale.dtype}.")
    starts = range(0, partitions, _QUADRANT)
    needed = starts[-1] + _QUADRANT // _GROUP
    free = scale.shape[1:]
    if scale.shape[0] < needed or prod(free) < columns or (len(free) > 1 and prod(free) > columns):
        machine.fault(
            "out-of-bounds",
            f"The scales of {partitions} partitions and {columns} columns lie in the first four partitions of each 32; "
            f"their tile has the shape {scale.shape}.",
        )
    columns_of = [(0, columns)] if len(free) == 1 else [(0, size) for size in free]
    return [scale.within(((at, at + _QUADRANT // _GROUP), *columns_of)) for at in starts]


def _real(values: Array, scales: Sequence[Array]) -> Array:
    """Return the values of packed elements, ``[partitions, columns, 4]`` in float32, times their scales."""
    numbers = packed_values(values)
    joined = np.concatenate([part.reshape(len(part), -1) for part in scales])
    factors = np.ldexp(np.float32(1), joined.astype(np.int32) - _BIAS) if joined.dtype == np.uint8 else joined
    return numbers * np.repeat(factors, _GROUP, axis=0)[:, :, None].astype(np.float32)
