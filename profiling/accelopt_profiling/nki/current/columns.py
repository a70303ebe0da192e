"""Tensor indirection of NeuronCore-v4: columns of a tensor on the chip at offsets that another tensor holds."""

from __future__ import annotations

from functools import partial
from math import prod
from operator import index as as_int
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile

#: Partitions of which each group has offsets of its own, for all engines but TensorE.
_GROUP = 16
#: Partitions at a multiple of which an index starts.
_QUADRANT = 32


def indirect_columns(tensor: Any, index: Any, num_elem: int | None) -> Any:
    """Return the view of ``num_elem`` columns.

    Offset ``i`` lies in partition ``i % 16`` of a group and column ``i // 16``. ``tensor`` and the view are
    ``NkiTensor``, whose module asks here.

    Raises:
        KernelFaultError: the core has no such views, or the index does not fit the tensor.
    """
    machine = current()
    if machine.limits.generation < 4:
        machine.fault("unsupported", "NkiTensor.indirect needs trn3.")
    if not isinstance(index, Tile) or index.block.info.memory is not MemorySpace.SBUF:
        machine.fault("unsupported", "The index of NkiTensor.indirect is a tensor in SBUF.")
    rows = index.shape[0]
    if rows != tensor.shape[0] or tensor.block.info.memory is MemorySpace.HBM:
        machine.fault(
            "out-of-bounds", f"The index has {rows} partitions, the tensor on the chip {tensor.shape[0]}."
        )
    if index.box()[0][0] % _QUADRANT:
        machine.fault(
            "unsupported", f"The index starts at partition {index.box()[0][0]}, not at a multiple of 32."
        )
    count = min(rows, _GROUP) * prod(index.shape[1:]) if num_elem is None else as_int(num_elem)
    return _columns(tensor, index, count, _GROUP)


def _columns(tensor: Any, index: Tile, count: int, group: int) -> Any:
    machine, rows = current(), tensor.shape[0]
    view = tensor.strided(tensor.offset, ((rows, tensor.dims[0][1]), (count, 0)))
    view.index, view.addressing = index, "columns"
    view.regrouped = partial(_columns, tensor, index, count)
    lanes, size = min(rows, group), prod(tensor.shape[1:])
    held = lanes * prod(index.shape[1:])
    if rows % lanes:
        machine.fault("unsupported", f"Groups of {lanes} partitions do not divide {rows}.")
    if not 0 < count <= held:
        machine.fault("out-of-bounds", f"{count} offsets are asked for; a group of partitions has {held}.")
    values = machine.index_values(index)
    if values is None:  # shapes only
        return view
    places = values.astype(np.int64).reshape(rows // lanes, lanes, -1).transpose(0, 2, 1).reshape(-1, held)
    offsets = places[:, :count].repeat(lanes, axis=0)
    if offsets.min() < 0 or offsets.max() >= size:
        machine.fault("out-of-bounds", f"An offset is {offsets.max()}; a partition has {size} elements.")
    own = tensor.strided(tensor.offset, tensor.dims).addresses().reshape(rows, size)
    view.positions = np.take_along_axis(own, offsets, axis=1)
    return view
