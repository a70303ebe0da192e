"""A rule of a page, and the inputs and statements that rules share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PageRule:
    """A rule of ``function``'s page. ``statements`` leave their result in ``o``; ``x``, ``y`` and ``z`` are the
    ``inputs`` in SBUF, ``a``, ``b`` and ``c`` the same in HBM; ``sbuf``, ``psum`` and ``hbm`` make a tensor of a shape
    and type. ``expected`` is None where the page forbids the call, or where what it does is undefined. ``told``: the
    page warns of the value, and so must a finding. ``version`` is of NKI, if not the newest; ``cores`` of the launch.
    """

    function: str
    text: str
    statements: str
    expected: Array | None
    inputs: tuple[Array, ...]
    core: str = "trn2"
    version: str = ""
    told: bool = False
    cores: int = 1


RNG = np.random.default_rng(38)
X = RNG.standard_normal((32, 64), dtype=np.float32)
Y = RNG.standard_normal((32, 64), dtype=np.float32)
COLUMN = RNG.uniform(0.5, 2, (32, 1)).astype(np.float32)
WHOLE = RNG.integers(-(2**31), 2**31, (32, 16), dtype=np.int32)
HALVES = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 300, -300, 3e9, -3e9]], np.float32).repeat(32, 0)
TIES = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8, 0]], np.float32).repeat(32, 0)
EIGHTS = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], np.float32).repeat(32, 0)
LEAST = np.float32(np.finfo(np.float32).min)


def new(name: str, dtype: str = "float32", like: str = "x.shape", buffer: str = "sbuf") -> str:
    return f"{name} = nl.ndarray({like}, dtype=nl.{dtype}, buffer=nl.{buffer})"


def rounded(x: Array, kind: Any) -> Array:
    limits = np.iinfo(kind)
    return np.clip(np.rint(x.astype(np.float64)), limits.min, limits.max).astype(kind)


OUT, BITS, SCALAR = new("o"), new("o", "int32"), new("o", like="(32, 1)")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def page(
    function: str, *rows: tuple[Any, ...], core: str = "trn2", inputs: tuple[Array, ...] = ()
) -> list[PageRule]:
    """Return the rules of a function's page: rows of a text, statements, the value, and inputs (``inputs`` if none)."""
    return [
        PageRule(function, text, statements, expected, tuple(given) or inputs, core)
        for text, statements, expected, *given in rows
    ]


def forbidden(
    function: str, head: str, *rows: tuple[Any, ...], core: str = "trn2", inputs: tuple[Array, ...] = (X, Y)
) -> list[PageRule]:
    """Return rules that forbid: rows of a text and statements that follow ``head``, and inputs (``inputs`` if none)."""
    return page(
        function,
        *((text, f"{head}\n{call}", None, *given) for text, call, *given in rows),
        core=core,
        inputs=inputs,
    )
