"""Read what the stride parameters of a kernel say of its tensors: how many dimensions they have, and which."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_POINTER = re.compile(r"_?(ptrs?|pointer)$")
_STRIDE = re.compile(r"_?strides?_?")
#: Letters of a dimension that follow a tensor's name at once: ``stride_qbs``.
_MOST_LETTERS = 2
#: Names of how far a convolution moves.
_STEP = re.compile(r"stride_(height|width|depth|[hwd])$")
#: A single stride of a tensor with this name counts elements of a row, not rows.
_WITHIN_A_ROW = re.compile(r"(col|_n|_k|1)$")


def strides_of(names: Sequence[str], tensors: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return, by tensor, its stride parameters in order, each with what its name says besides the tensor's:
    ``stride_xm`` of ``x_ptr`` and ``x_row_stride`` give "m" and "row". Strides whose tensor no name tells stand
    under what their names share.
    """
    stems = sorted(((_POINTER.sub("", t.lower()) or t.lower(), t) for t in tensors), key=lambda s: -len(s[0]))
    strides: dict[str, dict[str, str]] = {}
    for name in names:
        if "stride" in name.lower():
            rest = _STRIDE.sub("_", name.lower()).strip("_")
            owners = ((t, rest.removeprefix(stem)) for stem, t in stems if rest.startswith(stem))
            fits = ((t, suffix) for t, suffix in owners if suffix[:1] == "_" or len(suffix) <= _MOST_LETTERS)
            owner, suffix = next(fits, (name[:-1] or name, ""))
            strides.setdefault(owner, {})[name] = suffix.strip("_")
    return strides


def stride_dims(strides: Mapping[str, str], sizes: Sequence[str]) -> list[str]:
    """Return for each stride of a tensor the parameter among ``sizes`` that is the size of its dimension by name, ""
    where none is: ``M`` for "m", ``in_feat_dim`` for "in_feat"."""
    return [_size_named(rest, sizes) for rest in strides.values()]


def _size_named(rest: str, sizes: Sequence[str]) -> str:
    equal = (size for size in sizes if rest and size.lower() == rest)
    longer = (size for size in sizes if rest and size.lower().startswith(f"{rest}_"))
    return next(equal, "") or next(longer, "")


def is_step(strides: Mapping[str, str]) -> bool:
    """Tell whether strides of no tensor are how far a convolution moves."""
    return all(_STEP.search(name.lower()) for name in strides)


def stride_values(strides: Mapping[str, str], dims: Sequence[str]) -> dict[str, str]:
    """Return the values of a tensor's strides, in elements: it is contiguous with the dimensions ``dims``. Where one
    stride is missing it is the last, which is 1."""
    names = list(strides)
    if not dims:
        return dict.fromkeys(names, "1")
    if len(names) == 1 and len(dims) == 2 and _WITHIN_A_ROW.search(names[0].lower()):
        return {names[0]: "1"}
    if len(names) not in (len(dims), len(dims) - 1):
        return {name: "1" if name == names[-1] and len(names) > 1 else (dims or ["1"])[-1] for name in names}
    factors = [d if re.fullmatch(r"\w+", d) else f"({d})" for d in dims]
    return {name: " * ".join(factors[at + 1 :]) or "1" for at, name in enumerate(names)}
