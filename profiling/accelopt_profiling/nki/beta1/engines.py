"""Engines, types and operations as Beta 1's instructions name them."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import BINARY, PREDICATES, operation_name
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.data.instruction import GPSIMD
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.frontend.enums import NkiEngine


def engines_for(machine: Machine, engine: Any, usual: tuple[str, ...]) -> tuple[str, ...]:
    """Return the engines an instruction may run on: the developer's choice, or those the compiler would
    choose from."""
    if engine is None or engine is NkiEngine.unknown:
        return usual
    chosen = engine.value if isinstance(engine, NkiEngine) else str(engine)
    allowed = (*usual, GPSIMD)
    if chosen not in allowed:
        machine.fault(
            "unsupported", f"This instruction cannot run on {chosen}; it runs on {', '.join(allowed)}."
        )
    return (chosen,)


def dtype_or_none(dtype: Any) -> np.dtype[Any] | None:
    return None if dtype is None else as_dtype(dtype)


def two_operands(machine: Machine, op: Any) -> Any:
    name = operation_name(op)
    if name not in BINARY:
        machine.fault(
            "unsupported", f"The operation {name or op!r} is not one of {', '.join(sorted(BINARY))}."
        )
    function = BINARY[name]
    if name in PREDICATES:
        return lambda *operands: function(*operands).astype(np.float32)
    return function
