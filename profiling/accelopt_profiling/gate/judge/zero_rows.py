"""Judge what an output holds for rows of zeros by itself: beside other rows' values it may be too small to count."""

from __future__ import annotations

import numpy as np

from accelopt_profiling.comparison.elements import Array
from accelopt_profiling.comparison.leaves import Leaf

#: The reference's own runs have to agree by this, and what a kernel gives may be off by the other, both relative.
_AGREED, _OFF = 1e-3, 0.5
#: No number below this is asked for: products of it may be flushed to zero.
_LEAST = 1e-30


def lost_of_zero_rows(values: Array, expected: Array, native: Array, inputs: list[Leaf]) -> int | None:
    """Return the place in an output of one value for each row where an input's row is zero and the value is
    of another size than the reference's; None where there is none. An error that bounds a scale from below
    shows only there."""
    if values.dtype.kind != "f" or expected.shape != values.shape or native.shape != values.shape:
        return None
    mine, theirs, own = (a.reshape(-1).astype(np.float64) for a in (values, expected, native))
    for leaf in inputs:
        if not leaf.floating or len(leaf.shape) < 2 or leaf.values[..., 0].size != mine.size:
            continue
        zero = ~leaf.values.reshape(-1, leaf.shape[-1]).any(axis=1)
        size = np.abs(theirs)
        clear = zero & (size > _LEAST) & (np.abs(own - theirs) <= _AGREED * size)
        wrong = clear & ~(np.abs(mine - theirs) <= _OFF * size)
        if wrong.any():
            return int(np.argmax(wrong))
    return None
