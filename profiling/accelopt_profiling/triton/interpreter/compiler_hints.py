"""What a kernel tells the compiler: static assertions, and hints, which are checked against the values, since a false
one makes a GPU read or write elsewhere, unseen here. The gate imports the errors where no Triton is.

``tl.max_contiguous`` is not checked: kernels that wrap offsets round an edge give it falsely, and mask the results off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

Array = np.ndarray[Any, Any]


class StaticAssertionError(AssertionError):
    """``tl.static_assert`` fails: the kernel does not compile.

    ``kernel`` is the kernel's function, once known.
    """

    kernel: Any = None


class FalseHintError(AssertionError):
    """A kernel told the compiler what does not hold for its values."""

    device_raises: ClassVar[bool] = False


def false_multiple(values: Array, rank: int, numbers: Sequence[int]) -> str:
    """Return why the first element of each of ``values`` is no multiple of the first of ``numbers``; "" where it is.

    Axes before the last ``rank`` count programs.
    """
    first, number = values.reshape(*values.shape[: values.ndim - rank], -1)[..., 0], numbers[0]
    rest = np.mod(first, number)
    if not rest.any():
        return ""
    return f"tl.multiple_of({number}): {int(first.reshape(-1)[np.argmax(rest)])} is no multiple"


def false_constancy(values: Array, rank: int, numbers: Sequence[int]) -> str:
    """Return why ``values`` of one axis are not equal in groups of ``numbers[0]``; "" where they are."""
    number = numbers[0]
    if rank != 1 or number < 1 or values.shape[-1] % number:
        return ""
    groups = values.reshape(*values.shape[:-1], -1, number)
    equal = (groups == groups[..., :1]).all(axis=-1)
    if equal.all():
        return ""
    group = int(np.argmin(equal.reshape(-1, equal.shape[-1]).all(axis=0)))
    return f"tl.max_constancy({number}): elements {group * number} to {(group + 1) * number - 1} differ"


#: What is checked, by the name of the function of ``triton.language``.
CHECKS: Mapping[str, Callable[[Array, int, Sequence[int]], str]] = {
    "multiple_of": false_multiple,
    "max_constancy": false_constancy,
}


#: Memory begins at multiples of at least so many bytes here, and of more on a device.
_ALIGNED = 64


def check_hint(name: str, values: Array, rank: int, numbers: Any, addresses: bool = False) -> None:
    """Check the hint ``name`` of whole numbers or flags.

    Of ``addresses``, what bytes they are multiples of.

    Raises:
        FalseHintError: it does not hold.
    """
    listed: list[Any] = list(numbers) if isinstance(numbers, (list, tuple)) else [numbers]
    plain = [int(n.value if hasattr(n, "value") else n) for n in listed]
    if addresses:
        plain = [min(n, _ALIGNED) for n in plain if n & (n - 1) == 0 and name == "multiple_of"]
    if values.dtype.kind in "biu" and values.size and plain and plain[0]:
        reason = CHECKS[name](values, rank, plain)
        if reason:
            raise FalseHintError(f"A hint to the compiler does not hold: {reason}.")
