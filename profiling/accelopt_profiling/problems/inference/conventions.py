"""What kernel libraries usually mean by the name of a size, a number or a tensor (``conventions.json``)."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import Any

_OTHER_SIZE = 32


@cache
def _table() -> dict[str, list[tuple[re.Pattern[str], Any]]]:
    file = resources.files(__package__) / "conventions.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    return {
        kind: [(re.compile(pattern), value) for pattern, value, *_ in data[kind]]
        for kind in ("sizes", "values", "tensors")
    } | {
        "size meanings": [(re.compile(pattern), value) for pattern, value in data["size meanings"]],
        "sizes in use": [(re.compile(p), rest[-1]) for p, *rest in data["sizes"]],
    }


def _look_up(kind: str, name: str) -> Any:
    low = name.lower().removesuffix("_ptr").removesuffix("_tensor")
    for text in dict.fromkeys((low, bare_name(low)) if "size" in kind else (low,)):
        for pattern, value in _table()[kind]:
            if pattern.fullmatch(text):
                return value
    return None


def bare_name(name: str) -> str:
    """Return the name of a dimension without what says no more than that it is one: ``d`` for ``D_original_size``."""
    return re.sub(r"(_?(size|original|full|dim|global))+$", "", name.lower()) or name.lower()


def usual_size(name: str) -> int:
    """Return a small size that a dimension of this name may have, to try a call with; 32 where the name says
    nothing."""
    return int(_look_up("sizes", name) or _look_up("sizes", meaning_of_size(name)) or _OTHER_SIZE)


def size_in_use(name: str) -> int:
    """Return the size that a dimension of this name has where such kernels are used; at least the one of
    ``usual_size``."""
    return int(_look_up("sizes in use", name) or _OTHER_SIZE)


def meaning_of_size(name: str) -> str:
    """Return what a dimension of this name is, the same for all names of it; "" where the name says nothing."""
    return str(_look_up("size meanings", name) or "")


def names_a_size(name: str) -> bool:
    """Tell that the name is one that dimensions have, or ends as theirs do."""
    return _look_up("sizes", name) is not None or name.lower().endswith("_dim")


def usual_value(name: str) -> str | None:
    """Return the usual value of a number, flag, string or dtype of this name, as Python; None where the name
    says nothing."""
    value = _look_up("values", name)
    return None if value is None else str(value)


def usual_tensor(name: str) -> dict[str, Any]:
    """Return what a tensor of this name usually is: ``dims``, ``dtype`` and ``fill``, ``vector`` (one number
    a column) or ``rows`` (one a row); empty where the name says nothing."""
    return dict(_look_up("tensors", name) or {})
