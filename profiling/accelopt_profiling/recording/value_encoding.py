"""Encode the arguments of a call as JSON, and decode them again; tensors become storages that can be made anew.

Besides what ``comparison.values`` says there are the keys ``tensor``, ``device``, ``size``, ``slice``,
``triton_dtype`` and ``name`` (a function, class or enum member by module and qualified name). A storage says how its
elements are made (see ``tensor_fill``).
"""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.comparison.values import dtype_name, from_json, reach, to_json
from accelopt_profiling.recording.tensor_fill import describe


class UnrecordableValueError(Exception):
    """A value that cannot be written as data: an object with a state of its own."""


@dataclass
class _Range:
    """The elements of one storage that the tensors of a call reach: ``start`` and ``stop`` in elements. ``name`` is an
    argument that it belongs to."""

    name: str
    tensor: Any
    start: int
    stop: int

    def holds(self, tensor: Any) -> bool:
        """Tell whether ``tensor`` lies in the same memory, as the same type."""
        same = tensor.untyped_storage().data_ptr() == self.tensor.untyped_storage().data_ptr()
        return bool(same and tensor.dtype == self.tensor.dtype)

    @property
    def elements(self) -> int:
        return self.stop - self.start


@dataclass
class EncodedArguments:
    """The arguments of a call as JSON values. ``storages`` adds how the storages are filled."""

    values: list[Any] = field(default_factory=list)
    ranges: list[_Range] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """The size of what the tensors reach."""
        return sum(r.elements * r.tensor.element_size() for r in self.ranges)

    @property
    def dtypes(self) -> list[str]:
        """The types of the storages."""
        return [dtype_name(r.tensor.dtype) for r in self.ranges]

    def storages(self, budget: int) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the storages with their fill, and the arguments whose values are only described. ``budget`` is how
        many bytes of values may be kept.
        """
        import torch

        entries: list[dict[str, Any]] = []
        approximated: dict[str, None] = {}
        for reached, dtype in zip(self.ranges, self.dtypes, strict=True):
            with torch.no_grad():
                flat = reached.tensor.detach().as_strided((reached.elements,), (1,), reached.start)
            how, exact = describe(flat, budget)
            budget -= len(how.get("values", ""))
            if not exact:
                approximated[reached.name] = None
            entries.append({"dtype": dtype, "elements": reached.elements, **how})
        return entries, list(approximated)


def encode(arguments: list[tuple[str, Any]]) -> EncodedArguments:
    """Encode arguments, given by name.

    Raises:
        UnrecordableValueError: one of them cannot be written as data.
    """
    encoded = EncodedArguments()
    views: list[tuple[Any, dict[str, Any]]] = []
    for name, value in arguments:
        encoded.values.append(to_json(value, _other(name, encoded.ranges, views)))
    for tensor, view in views:
        start, stop = _extent(tensor)
        number, reached = next(
            (n, r)
            for n, r in enumerate(encoded.ranges)
            if r.holds(tensor) and r.start <= start and stop <= r.stop
        )
        view.update(storage=number, offset=start - reached.start)
    return encoded


def _other(name: str, ranges: list[_Range], views: list[tuple[Any, dict[str, Any]]]) -> Callable[[Any], Any]:
    """Return what encodes the tensors and objects in the argument ``name``.

    Tensors and what is written of them are added to ``views``, their memory to ``ranges``.
    """
    import torch

    def other(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
                raise UnrecordableValueError(f"{name} is a {type(value).__name__}")
            _reach(name, value, ranges)
            view = {"storage": 0, "shape": list(value.shape), "stride": list(value.stride()), "offset": 0}
            views.append((value, view | {"requires_grad": True} if value.requires_grad else view))
            return {"tensor": views[-1][1]}
        if isinstance(value, torch.Size):
            return {"size": [int(n) for n in value]}
        if type(value) is dict:
            return {"dict": [[to_json(k, other), to_json(v, other)] for k, v in value.items()]}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, slice):
            return {"slice": [to_json(v, other) for v in (value.start, value.stop, value.step)]}
        if type(value).__module__.startswith("triton.language"):
            if type(value).__name__ == "dtype":
                return {"triton_dtype": value.name}
            if type(value).__name__ == "constexpr":
                return to_json(value.value, other)
        return {"name": _global_name(value)}

    return other


def _extent(tensor: Any) -> tuple[int, int]:
    start = int(tensor.storage_offset())
    return start, start + reach(tensor.shape, tensor.stride())


def _reach(name: str, tensor: Any, ranges: list[_Range]) -> None:
    """Give a tensor a range. Tensors that overlap in one storage share theirs."""
    start, stop = _extent(tensor)
    for other in ranges:
        if other.holds(tensor) and start < other.stop and other.start < stop:
            other.start, other.stop = min(start, other.start), max(stop, other.stop)
            return
    ranges.append(_Range(name, tensor, start, stop))


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
    """Put the arguments together again from one-dimensional tensors.

    Names of the kernel file's own module are looked up in ``module``.

    Raises:
        ValueError: the data does not have the form.
    """
    import torch

    tensors: dict[str, Any] = {}

    def other(kind: str, inner: Any) -> Any:
        if kind == "tensor":
            key = str(inner)
            if key not in tensors:  # one tensor passed twice is one tensor again
                flat = storages[inner["storage"]]
                view = flat.as_strided(inner["shape"], inner["stride"], inner.get("offset", 0))
                tensors[key] = view.requires_grad_() if inner.get("requires_grad") else view
            return tensors[key]
        if kind == "slice":
            return slice(*(from_json(v, other) for v in inner))
        if kind == "device":
            return torch.device(inner if torch.cuda.is_available() else "cpu")
        if kind == "name":
            return _named(inner, module)
        if kind == "dtype":
            return getattr(torch, inner)
        if kind == "triton_dtype":
            return _triton_dtype(inner)
        if kind == "size":
            return torch.Size(inner)
        raise ValueError(f"a recorded value of the unknown kind {kind!r}")

    return [from_json(value, other) for value in values]


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
