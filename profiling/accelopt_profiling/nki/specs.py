"""Inputs as shapes and types: what a trace needs, so that first numbers need not wait for values to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.dtypes import named

_PLAIN = (bool, int, float, str, type(None))


def specs_of(inputs: Sequence[Any]) -> list[dict[str, Any]] | None:
    """The specifications of drawn inputs; None when one of them is neither an array nor a plain value."""
    found: list[dict[str, Any]] = []
    for value in inputs:
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            name = str(value.dtype).rpartition(".")[2]
            found.append({"shape": [int(n) for n in value.shape], "dtype": name})
        elif isinstance(value, _PLAIN):
            found.append({"value": value})
        else:
            return None
    return found


def stand_ins(specs: Sequence[dict[str, Any]]) -> list[Any]:
    """Arrays of the given shapes that take no memory: one zero seen everywhere."""
    return [
        np.broadcast_to(np.zeros((), dtype=named(s["dtype"])), tuple(s["shape"]))
        if "shape" in s
        else s["value"]
        for s in specs
    ]
