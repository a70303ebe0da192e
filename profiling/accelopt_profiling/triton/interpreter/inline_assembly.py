"""Inline assembly that is one instruction of PTX (ISA 8.7): what kernels use it for most often."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_ONE = re.compile(r"([a-z0-9]+)((?:\.[a-z0-9_]+)*)((?:\s+[^;]*)?);?(?:\s*//.*)?")
#: Instructions on floats that give one value per element; approximations are computed exactly.
_FLOATS: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh, "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "abs": np.abs,
    "neg": np.negative, "rcp": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x), "max": np.fmax, "min": np.fmin,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "fma": lambda x, y, z: x * y + z,
}  # fmt: skip
#: Instructions that order or time programs: here programs run one after another, at no time.
_ORDER = ("griddepcontrol", "membar", "fence", "bar", "nanosleep")
_ZERO_REGISTERS = ("%globaltimer", "%smid", "%clock", "%clock64", "%nsmid", "%laneid", "%warpid")


def instruction(text: str, operands: Sequence[Array]) -> list[Array] | None:
    """Return the results of the instruction ``text`` on ``operands``; None where it is another or several."""
    one = _ONE.fullmatch(" ".join(text.split()).strip("{} "))
    if one is None:
        return None
    name, suffixes, rest = one[1], one[2].split(".")[1:], one[3].replace(" ", "")
    zero = np.zeros(1, np.int64)
    if name in _ORDER:
        return [zero]
    if name == "mov" and any(rest == f"$0,{register}" for register in _ZERO_REGISTERS):
        return [zero]
    compute = _FLOATS.get(name)
    wanted = ",".join(f"${n}" for n in range(len(operands) + 1))
    if compute is None or rest != wanted or not suffixes or suffixes[-1] not in ("f16", "bf16", "f32", "f64"):
        return None
    return [compute(*operands)]
