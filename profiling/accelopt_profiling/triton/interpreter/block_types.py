"""Construct Triton's block types and tensors with shapes that are checked and wrapped once.

Triton wraps the sizes of each value anew: as a tuple with a type of its own, and each size as a constant. A third of
the time of a small kernel went there. What follows from the sizes alone is kept here; the rest is as Triton makes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as stock

_CONSTANT = tl.constexpr
_POINTER = np.dtype(np.uint64)


class _Sizes:
    """What follows from the sizes of a block: ``shape`` of its type, ``constants`` and ``count`` of its tensors."""

    def __init__(self, sizes: tuple[int, ...], shape: Any, numel: int) -> None:
        self.shape, self.numel, self.text = shape, numel, str(shape)
        self.constants = tl.tuple([_CONSTANT(size) for size in sizes])
        self.count = _CONSTANT(math.prod(sizes))


class BlockTypes:
    """Constructors of values, for ``Language``'s patches. Each keeps to what Triton's own one does and raises."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[int, ...], _Sizes] = {}
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._make_type = tl.block_type.__init__
        self._dtype_of = stock._get_np_dtype
        self._scalar = (tl.tuple([]), _CONSTANT(1))

    def patches(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        """Yield who owns what is replaced, its name, and what replaces it."""

        def make_type(block: Any, element_ty: Any, shape: Any) -> None:
            listed = shape if isinstance(shape, (list, tl.tuple)) else ()
            sizes = tuple([s.value if isinstance(s, _CONSTANT) else s for s in listed])
            known = self._sizes.get(sizes) if all(type(n) is int for n in sizes) else None
            if known is None:
                self._make_type(block, element_ty, shape)
                known = self._sizes[sizes] = _Sizes(sizes, block.shape, block.numel)
            block.element_ty, block.shape, block.numel = element_ty, known.shape, known.numel
            block.name = f"<{known.text}, {element_ty}>"
            block.sizes_of_tensors = known

        def make_tensor(tensor: Any, handle: Any, type: Any) -> None:
            tensor.handle, tensor.type, tensor.dtype = handle, type, type.scalar
            if not type.is_block():
                tensor.shape, tensor.numel = self._scalar
                return
            known = getattr(type, "sizes_of_tensors", None)
            if known is None:  # a type that was made outside of an interpretation
                known = tl.block_type(type.element_ty, type.shape).sizes_of_tensors
            tensor.shape, tensor.numel = known.constants, known.count

        def numpy_dtype(type: Any) -> np.dtype[Any]:
            scalar = type.scalar
            if isinstance(scalar, tl.pointer_type):
                return _POINTER
            known = self._dtypes.get(scalar.name)
            if known is None:
                known = self._dtypes[scalar.name] = self._dtype_of(scalar)
            return known

        yield tl.block_type, "__init__", make_type
        yield tl.tensor, "__init__", make_tensor
        yield stock, "_get_np_dtype", numpy_dtype
