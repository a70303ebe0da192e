"""Convert dataclasses to and from plain JSON values, with the standard library only: the worker uses it too."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from enum import Enum
from functools import cache
from pathlib import Path, PurePath
from typing import Any, TypeVar

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Return a JSON-ready copy of ``value``: dataclasses become objects, enums their values, NaN and Inf null."""
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, dict):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return to_plain(value.item())  # a NumPy scalar
    return value


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def from_plain(cls: type[T], data: Any) -> T:
    """Build ``cls`` from plain JSON values.

    Unknown keys are ignored: a newer worker may say more.

    Raises:
        ValueError: the data does not have the shape of ``cls``.
    """
    return typing.cast(T, _build(cls, data))


def _build(hint: Any, data: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        options = [a for a in typing.get_args(hint) if a is not type(None)]
        if data is None:
            return None
        return _build(options[0], data) if len(options) == 1 else data
    if origin in (list, tuple):
        if not isinstance(data, list):
            raise ValueError(f"expected a list, got {type(data).__name__}")
        inner = typing.get_args(hint) or (Any,)
        if origin is tuple and len(inner) > 1 and inner[-1] is not Ellipsis:
            if len(data) != len(inner):
                raise ValueError(f"expected {len(inner)} values, got {len(data)}")
            return tuple(_build(each, v) for each, v in zip(inner, data, strict=True))
        return origin(_build(inner[0], v) for v in data)
    if origin is dict:
        if not isinstance(data, dict):
            raise ValueError(f"expected an object, got {type(data).__name__}")
        inner = typing.get_args(hint)[1]
        return {k: _build(inner, v) for k, v in data.items()}
    if origin is typing.Literal:
        if data not in typing.get_args(hint):
            raise ValueError(f"expected one of {typing.get_args(hint)}, got {data!r}")
        return data
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        if not isinstance(data, dict):
            raise ValueError(f"expected an object for {hint.__name__}, got {type(data).__name__}")
        hints = _hints(hint)
        try:
            return hint(**{k: _build(hints[k], v) for k, v in data.items() if k in hints})
        except TypeError as error:
            raise ValueError(f"{hint.__name__}: {error}") from None
    if origin is None and isinstance(hint, type) and issubclass(hint, Enum):
        return hint(data)
    if hint is Path and isinstance(data, str):
        return Path(data)
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if hint in (int, float, str, bool) and not isinstance(data, hint):
        raise ValueError(f"expected {hint.__name__}, got {data!r}")
    return data
