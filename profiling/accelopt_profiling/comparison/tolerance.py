"""The error that an output may have against the float64 reference, where the problem states none.

Three bounds hold at once, for the error d, the expected values e and the relative tolerance r of the dtype:

* whole output: ||d|| <= r ||e|| + absolute sqrt(n) + 4 ||o||
* each row (last axis): the same with the row's own norms
* each element: |d| <= 5 r (|e| + rms of the row of e) + absolute + 8 rms of the row of o + o

o = |native - e| + |nearby - e| shows how well the problem is conditioned at these inputs (long sums, cancellation), so
an honest kernel may be off by a few times as much; the element's own o counts too, since in a row that grows, as a
scan's may, nearly all of o lies at its end. ``native`` is the reference run in the inputs' own dtype; ``nearby`` is e
for inputs that are each off by up to ``NEARBY`` of their size (eight roundings of float32): a stable kernel is exact
for inputs nearby. Where that moves a row by more than r ||e||, the farthest of several such runs counts. Where one of
them was not run its part is zero. 5 r: the largest of a million normal errors is about five times their rms.
``absolute`` is the problem's, and at least the least number that the dtype holds: below it an honest kernel gives zero,
however large the error is beside the number.

Whole numbers have to be equal, but where they were rounded from floats (int8 of a quantisation): so many elements may
be off by one as are off by one for inputs ``FURTHER`` times as far off as those nearby.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

from accelopt_profiling.problems.problem import Tolerance

NATIVE_NORM = 4.0
NATIVE_ELEMENT = 8.0
ELEMENT = 5.0
#: By the coarsest dtype among the inputs: how far inputs nearby are; float32 for all that is coarser, since kernels
#: compute in it.
NEARBY = {"float64": 2.0**-49, "float32": 2.0**-20}
#: So many times further off are inputs that show which whole numbers, rounded from floats, may be rounded otherwise.
FURTHER = 8.0
#: float dtypes from fine to coarse
_COARSENESS = (
    "float64", "float32", "float16", "bfloat16",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
)  # fmt: skip


@dataclass(frozen=True)
class Allowed:
    """``relative`` and ``absolute`` as in the module's formulas.

    ``stated`` tells that the problem gave them.
    """

    relative: float
    absolute: float
    stated: bool = False


@cache
def _table(of: str = "relative") -> dict[str, float]:
    text = (
        resources.files("accelopt_profiling.comparison")
        .joinpath("tolerance.json")
        .read_text(encoding="utf-8")
    )
    return {name: float(entry["value"]) for name, entry in json.loads(text)[of].items()}


def rule() -> dict[str, float]:
    """Return the gate's own relative tolerance by dtype, for a receipt."""
    return dict(_table())


def allowed(dtypes: list[str], stated: Tolerance) -> Allowed:
    """Return the tolerance for an output, given the float dtypes of the inputs and of the output.

    The coarsest of them counts: rounding to bfloat16 anywhere in an honest kernel with bfloat16 inputs costs
    that much.
    """
    coarse = coarsest(dtypes)
    relative = _table()[coarse] if coarse else _table()["float64"]
    if stated.relative is not None:
        relative = stated.relative
    absolute = max(stated.absolute or 0.0, _table("least")[coarse] if coarse else 0.0)
    return Allowed(relative, absolute, stated.relative is not None or stated.absolute is not None)


def coarsest(dtypes: list[str]) -> str | None:
    """Return the float dtype with the fewest significant bits among ``dtypes``.

    None when none of them is a float.
    """
    floats = [d for d in dtypes if d in _COARSENESS]
    return max(floats, key=_COARSENESS.index) if floats else None
