"""What instructions do to values that the work itself knows about: move them, transpose them, multiply them."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.data.block import Array


def same(x: Any) -> Any:
    """The values as they are: loads, stores and copies."""
    return x


def turned(x: Array) -> Any:
    """The transpose of a tile, its free dimensions taken as one."""
    return x.reshape(x.shape[0], -1).T


def multiplied(a: Array, b: Array) -> Array:
    """The product of two operands of TensorE, the first transposed."""
    product: Array = np.matmul(a.reshape(a.shape[0], -1).T, b.reshape(b.shape[0], -1))
    return product
