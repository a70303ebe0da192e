"""Give an inferred call the sizes that kernels have in use: thousands of rows, hidden sizes of models."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from copy import deepcopy

from accelopt_profiling.problems.inference.arguments import InferredCall, NoSizeError
from accelopt_profiling.problems.inference.conventions import size_in_use, usual_size

#: Elements of all tensors above which a call is not tried as it was guessed, and above which its gradients are tried
#: with zeros.
MOST_TRIED, LARGE = 1 << 24, 1 << 22
#: Bytes of all tensors together, and elements of one.
_MOST_BYTES = 1 << 30
_MOST_ELEMENTS = 1 << 28


def elements(call: InferredCall) -> int:
    """Return the number of elements of a call's tensors. Raises NoSizeError."""
    return sum(math.prod(call.shape(tensor)) for tensor in call.tensors)


def made_small(call: InferredCall) -> InferredCall:
    """Halve the largest sizes of a guessed call until it can be tried quickly: usual sizes of four dimensions are, all
    together, much. Sizes stay different ones, and 16 at least."""
    with contextlib.suppress(NoSizeError):
        while elements(call) > MOST_TRIED:
            sizes = set(call.sizes.values())
            halves = [(s, n) for n, s in call.sizes.items() if s >= 32 and s // 2 not in sizes]
            if not halves:
                break
            size, name = max(halves)
            call.sizes[name] = size // 2
    return call


def enlarged_calls(call: InferredCall) -> Iterator[InferredCall]:
    """Yield copies of a call with larger sizes, the largest first: all of them in use, all but the last dimensions, the
    last dimensions alone. Calls whose tensors are too large, or that are the call itself, are left out.
    """
    last = {tensor.dims[-1] for tensor in call.tensors if tensor.dims}
    product, meanings = _is_product(call), _of_matrices(call)
    previous_sizes = [call.sizes]
    for chosen in (set(call.sizes), set(call.sizes) - last, set(call.sizes) & last):
        larger = deepcopy(call)
        larger.sizes = {
            name: _larger(name, size, product, meanings) if name in chosen else size
            for name, size in call.sizes.items()
        }
        if larger.sizes not in previous_sizes and _fits(larger):
            previous_sizes.append(larger.sizes)
            yield larger


def _of_matrices(call: InferredCall) -> dict[str, str]:
    """Return sizes that count rows or columns, whatever their names usually mean: a batch or the size of a head that is
    a dimension of matrices and of nothing with more dimensions."""
    deeper = {dim for tensor in call.tensors if len(tensor.dims) > 2 for dim in tensor.dims}
    meanings: dict[str, str] = {}
    for tensor in call.tensors:
        for place, (of, like) in zip(tensor.dims, (("rows", "batch"), ("columns", "head_dim")), strict=False):
            if len(tensor.dims) == 2 and place not in deeper and usual_size(place) == usual_size(like):
                meanings.setdefault(place, of)
    return meanings


def _larger(name: str, size: int, product: bool, meanings: dict[str, str]) -> int:
    """Return the size by as much larger as its name has it in use; a size of a product is that of a square one."""
    if product:
        return max(size, 2048)
    if name in meanings:
        return max(size, size_in_use(meanings[name]))
    return size * max(1, size_in_use(name) // usual_size(name))


def _is_product(call: InferredCall) -> bool:
    """Tell whether the tensors are matrices that share dimensions in pairs: ``(m, k)``, ``(k, n)``."""
    shapes = [tensor.dims for tensor in call.tensors]
    return (
        len(call.sizes) == 3
        and len(shapes) >= 2
        and all(len(dims) == 2 and set(dims) <= set(call.sizes) for dims in shapes)
        and len({tuple(sorted(dims)) for dims in shapes}) >= 2
    )


def _fits(call: InferredCall) -> bool:
    total = 0
    for tensor in call.tensors:
        count = 1
        try:
            for size in call.shape(tensor):
                count *= max(1, size)
        except NoSizeError:
            return False
        if count > _MOST_ELEMENTS:
            return False
        total += count * (8 if tensor.dtype in ("int64", "float64") else 4 if "32" in tensor.dtype else 2)
    return total <= _MOST_BYTES
