"""``neuronxcc.nki.isa``: one function per hardware instruction, by name; each returns the tile it writes."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.nki.compute.operations import REDUCTIONS, operation_name
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.operators import reduce


def tensor_reduce(
    op: Any, data: Any, axis: Any, *, dtype: Any = None, negate: bool = False, keepdims: bool = False,
    mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """Reduce along free dimensions on VectorE."""
    machine = current()
    name = operation_name(op)
    if name not in REDUCTIONS:
        machine.fault("unsupported", f"tensor_reduce cannot reduce with {name or op!r}.")
    return reduce(machine, name, data, axis, dtype, mask, keepdims, negate)
