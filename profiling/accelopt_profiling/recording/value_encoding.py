"""Encode the arguments of a call as JSON, and decode them again; tensors become storages that can be made anew.

What JSON has no words for is an object with one key: ``tensor``, ``tuple``, ``dict``, ``float`` (not finite),
``dtype``, ``triton_dtype``, ``device``, ``size``, ``slice``, or ``name`` (a function, class or enum member by module
and qualified name). A storage says how its elements are made (see ``tensor_fill``).
"""

from __future__ import annotations

import enum
import importlib
import math
import sys
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.recording.tensor_fill import describe

_PLAIN = (bool, int, str, type(None))


class UnrecordableValueError(Exception):
    """A value that cannot be written as data: an object with a state of its own."""


@dataclass
class _Range:
    """The elements of one storage that the tensors of a call reach: ``start`` and ``stop`` in elements."""

    tensor: Any
    start: int
    stop: int

    def meets(self, start: int, stop: int) -> bool:
        return start < self.stop and self.start < stop


@dataclass
class EncodedArguments:
    """The arguments of a call as JSON values; ``describe`` adds how the storages are filled."""

    values: list[Any] = field(default_factory=list)
    ranges: list[_Range] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)  # an argument that a storage belongs to

    @property
    def bytes(self) -> int:
        """The size of what the tensors reach."""
        return sum((r.stop - r.start) * r.tensor.element_size() for r in self.ranges)

    def storages(self, budget: int) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the storages with their fill, and the arguments whose values are only described. ``budget`` is how
        many bytes of values may be kept.
        """
        import torch

        made: list[dict[str, Any]] = []
        approximated: list[str] = []
        for number, reach in enumerate(self.ranges):
            with torch.no_grad():
                flat = reach.tensor.detach().as_strided((reach.stop - reach.start,), (1,), reach.start)
            how, exact = describe(flat, budget)
            budget -= len(how.get("values", ""))
            if not exact:
                approximated.append(self.names.get(number, f"storage {number}"))
            dtype = str(flat.dtype).removeprefix("torch.")
            made.append({"dtype": dtype, "elements": reach.stop - reach.start, **how})
        return made, list(dict.fromkeys(approximated))


def encode(named: list[tuple[str, Any]]) -> EncodedArguments:
    """Encode arguments, given by name.

    Raises:
        UnrecordableValueError: one of them cannot be written as data.
    """
    encoded = EncodedArguments()
    tensors: list[tuple[str, Any]] = []
    for name, value in named:
        _tensors_in(value, name, tensors)
    _find_ranges(encoded, tensors)
    encoded.values = [_encode(value, encoded) for _, value in named]
    return encoded


def _tensors_in(value: Any, name: str, into: list[tuple[str, Any]]) -> None:
    import torch

    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
            raise UnrecordableValueError(f"{name} is a {type(value).__name__}")
        into.append((name, value))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _tensors_in(inner, name, into)
    elif isinstance(value, dict):
        for inner in value.values():
            _tensors_in(inner, name, into)


def _extent(tensor: Any) -> tuple[int, int]:
    start = int(tensor.storage_offset())
    if not tensor.numel():
        return start, start
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + int(reach) + 1


def _find_ranges(encoded: EncodedArguments, tensors: list[tuple[str, Any]]) -> None:
    """Give every tensor a range; tensors that overlap in one storage share theirs."""
    for name, tensor in tensors:
        start, stop = _extent(tensor)
        overlapping = (k for k in encoded.ranges if _same_memory(k.tensor, tensor) and k.meets(start, stop))
        known = next(overlapping, None)
        if known is not None:
            known.start, known.stop = min(start, known.start), max(stop, known.stop)
        else:
            encoded.names[len(encoded.ranges)] = name
            encoded.ranges.append(_Range(tensor, start, stop))


def _same_memory(one: Any, other: Any) -> bool:
    same = one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    return bool(same and one.dtype == other.dtype)


def _encode(value: Any, encoded: EncodedArguments) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return {"tensor": _tensor(value, encoded)}
    if isinstance(value, enum.Enum):
        return {"name": _global_name(value)}
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) in _PLAIN:
        return value
    if isinstance(value, torch.Size):
        return {"size": [int(n) for n in value]}
    if type(value) is list:
        return [_encode(v, encoded) for v in value]
    if type(value) is tuple:
        return {"tuple": [_encode(v, encoded) for v in value]}
    if type(value) is dict:
        return {"dict": [[_encode(k, encoded), _encode(v, encoded)] for k, v in value.items()]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, slice):
        return {"slice": [_encode(v, encoded) for v in (value.start, value.stop, value.step)]}
    if type(value).__module__.startswith("triton.language") and type(value).__name__ == "dtype":
        return {"triton_dtype": value.name}
    if type(value).__module__.startswith("triton.language") and type(value).__name__ == "constexpr":
        return _encode(value.value, encoded)
    return {"name": _global_name(value)}


def _tensor(value: Any, encoded: EncodedArguments) -> dict[str, Any]:
    start, stop = _extent(value)
    number = next(
        n
        for n, k in enumerate(encoded.ranges)
        if _same_memory(k.tensor, value) and k.start <= start and stop <= k.stop
    )
    made: dict[str, Any] = {"storage": number, "shape": list(value.shape), "stride": list(value.stride())}
    made["offset"] = start - encoded.ranges[number].start
    if value.requires_grad:
        made["requires_grad"] = True
    return made


def _global_name(value: Any) -> str:
    """Return ``module:qualified.name`` of a function, class, enum member or jitted function.

    Raises:
        UnrecordableValueError: it has no such name.
    """
    if isinstance(value, enum.Enum):
        module, name = type(value).__module__, f"{type(value).__qualname__}.{value.name}"
    else:
        of = getattr(value, "fn", value) if type(value).__name__ == "JITFunction" else value
        module, name = str(getattr(of, "__module__", "")), str(getattr(of, "__qualname__", "?"))
    holder: Any = sys.modules.get(module)
    for part in name.split("."):
        holder = getattr(holder, part, None)
    if holder is not value:
        raise UnrecordableValueError(f"a {type(value).__name__} has a state that is not data")
    return f"{module}:{name}"


def decode(values: list[Any], storages: list[Any], module: Any) -> list[Any]:
    """Put the arguments together again from one-dimensional tensors. Names of the kernel file's own module are looked
    up in ``module``.

    Raises:
        ValueError: the data does not have the form.
    """
    tensors: dict[str, Any] = {}
    return [_decode(value, storages, tensors, module) for value in values]


def _decode(value: Any, storages: list[Any], tensors: dict[str, Any], module: Any) -> Any:
    import torch

    if isinstance(value, list):
        return [_decode(v, storages, tensors, module) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError("a recorded value does not have one kind")
    ((kind, inner),) = value.items()
    if kind == "tensor":
        key = str(inner)
        if key not in tensors:  # one tensor passed twice is one tensor again
            flat = storages[inner["storage"]]
            view = flat.as_strided(inner["shape"], inner["stride"], inner.get("offset", 0))
            tensors[key] = view.requires_grad_() if inner.get("requires_grad") else view
        return tensors[key]
    if kind == "tuple":
        return tuple(_decode(v, storages, tensors, module) for v in inner)
    if kind == "dict":
        return {
            _decode(k, storages, tensors, module): _decode(v, storages, tensors, module) for k, v in inner
        }
    if kind == "slice":
        return slice(*(_decode(v, storages, tensors, module) for v in inner))
    if kind == "float":
        return float(inner)
    if kind == "dtype":
        return getattr(torch, inner)
    if kind == "triton_dtype":
        return _triton_dtype(inner)
    if kind == "device":
        return torch.device(inner if torch.cuda.is_available() else "cpu")
    if kind == "size":
        return torch.Size(inner)
    if kind == "name":
        return _named(inner, module)
    raise ValueError(f"a recorded value of the unknown kind {kind!r}")


def _triton_dtype(name: str) -> Any:
    import triton.language as tl

    for candidate in vars(tl).values():
        if isinstance(candidate, tl.dtype) and candidate.name == name:
            return candidate
    raise ValueError(f"Triton has no dtype {name!r}")


def _named(spelling: str, module: Any) -> Any:
    where, _, name = spelling.partition(":")
    own = module is not None and where.split(".")[-1] == str(getattr(module, "__name__", "")).split(".")[-1]
    value: Any = module if own else importlib.import_module(where)
    for part in name.split("."):
        value = getattr(value, part)
    return value
