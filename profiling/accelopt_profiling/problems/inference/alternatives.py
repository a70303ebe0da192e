"""Other calls near one that failed, likeliest first: what is tried where no kind of error says what to change.

What an error names comes first: the numbers of its message, and the arguments of the statement that raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy

from accelopt_profiling.problems.inference.arguments import (
    InferredArgument,
    InferredCall,
    NoSizeError,
    names_in,
)

#: Sizes of the machine and usual ones, besides halves and doubles.
_USUAL = (128, 512, 1, 64, 256, 1024, 2048)
_LARGEST = 1 << 15
_WHY = "found by trying"


def alternatives(
    call: InferredCall, message: str, involved: Sequence[InferredArgument]
) -> Iterator[tuple[str, InferredCall]]:
    """Yield copies of ``call`` that differ in one thing, each with what it is. ``message`` is the error's, and
    ``involved`` are the arguments that the failing statement uses."""
    stated = [int(n) for n in re.findall(r"\d{1,6}", message)]
    names = [a.name for a in involved]
    yield from _dimensions(call, stated, names[:2], nearby=True)
    yield from _sizes(call, stated, names)
    yield from _dimensions(call, stated, names)
    yield from _values(call, stated, names)
    yield from _kinds(call, names)


def smaller_calls(call: InferredCall) -> Iterator[tuple[str, InferredCall]]:
    """Yield copies of ``call`` of which one size is an eighth, a quarter or a half, the largest first; numbers that
    tensors have in common are sizes here too."""
    literals = {int(d) for tensor in call.tensors for d in tensor.dims if d.isdigit()}
    for divisor in (8, 4, 2):
        for size in sorted({*call.sizes.values(), *literals}, reverse=True):
            smaller = size // divisor
            if size % divisor or smaller < 1:
                continue
            other = deepcopy(call)
            other.sizes = {name: smaller if n == size else n for name, n in call.sizes.items()}
            for tensor in other.tensors:
                tensor.dims = [str(smaller) if d == str(size) else d for d in tensor.dims]
            yield f"{size} became {smaller}", other


def _sizes(call: InferredCall, stated: list[int], names: list[str]) -> Iterator[tuple[str, InferredCall]]:
    """Give one size another value: first those of the statement's arguments, or that the message tells."""
    near = {n for name in names if (a := call.argument(name)) for d in a.dims for n in names_in(d)}
    order = sorted(call.sizes, key=lambda n: (n not in near, call.sizes[n] not in stated))
    for nearby in (True, False):
        for size in order:
            if nearby is not (size in near or call.sizes[size] in stated):
                continue
            for value in _wanted(call.sizes[size], stated, list(call.sizes.values())):
                other = deepcopy(call)
                other.sizes[size] = value
                yield f"{size} is {value}", other


def _dimensions(
    call: InferredCall, stated: list[int], names: list[str], nearby: bool = False
) -> Iterator[tuple[str, InferredCall]]:
    """Give one dimension of an involved tensor a size of its own. ``nearby``: one that the message tells."""
    for name in names:
        argument = call.argument(name)
        if argument is None or argument.kind != "tensor":
            continue
        for at, dimension in enumerate(argument.dims):
            try:
                own = call.size_of(dimension)
            except NoSizeError:
                own = 0
            for size in _wanted(own, stated, [])[: 4 if nearby else 12]:
                if nearby and size not in stated and size - 1 not in stated:
                    continue
                other = deepcopy(call)
                changed = other.argument(name)
                assert changed is not None
                changed.dims[at], changed.reason = other.expression(size) or str(size), _WHY
                yield f"{name}.shape[{at}] is {size}", other


def _values(call: InferredCall, stated: list[int], names: list[str]) -> Iterator[tuple[str, InferredCall]]:
    """Give a number another one, and turn a flag. Of the involved arguments first."""
    for argument in sorted(call.arguments, key=lambda a: a.name not in names):
        if argument.kind != "value":
            continue
        choices = {"True": ["False"], "False": ["True"]}.get(argument.value, [])
        if argument.value.isdigit():
            choices = [str(n) for n in _wanted(int(argument.value), stated, list(call.sizes.values()))[:6]]
        for value in choices:
            other = deepcopy(call)
            changed = other.argument(argument.name)
            assert changed is not None
            changed.value, changed.reason = value, _WHY
            yield f"{argument.name} is {value}", other


def _kinds(call: InferredCall, names: list[str]) -> Iterator[tuple[str, InferredCall]]:
    """Give an involved tensor one dimension more or fewer, another type, or pass None for it."""
    for name in names:
        argument = call.argument(name)
        if argument is None or argument.kind != "tensor":
            continue
        ranks = [["1", *argument.dims], [*argument.dims, "1"], argument.dims[1:], argument.dims[:-1]]
        for dims in ranks if not argument.firm else []:
            other = deepcopy(call)
            changed = other.argument(name)
            assert changed is not None
            changed.dims, changed.reason = list(dims), _WHY
            yield f"{name} has {len(dims)} dimensions", other
        for dtype in ("bfloat16", "int32", "float32"):
            if dtype != argument.dtype:
                other = deepcopy(call)
                changed = other.argument(name)
                assert changed is not None
                changed.dtype, changed.reason = dtype, f"dtype {_WHY}"
                changed.fill = "index" if dtype == "int32" else "random"
                yield f"{name} is {dtype}", other
        for value in ("1", "None") if not argument.firm else []:
            other = deepcopy(call)
            changed = other.argument(name)
            assert changed is not None
            changed.kind, changed.value, changed.reason = "value", value, _WHY
            yield f"{name} is {value}", other


def _wanted(current: int, stated: list[int], others: list[int]) -> list[int]:
    """Return other values for a size, likeliest first."""
    near = [m for n in stated[:4] for m in (n, n + 1) if m <= 4096]
    own = [2 * current, 3 * current, current // 2, 4 * current]
    return [n for n in dict.fromkeys([*near[:4], *_USUAL[:2], *own, *_USUAL[2:], *others])
            if n != current and 0 < n <= _LARGEST]  # fmt: skip
