"""The axes that a problem's ``get_inputs`` takes: its integer keyword arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def integer_axes(get_inputs: Callable[..., Any]) -> Mapping[str, int]:
    """The arguments of ``get_inputs`` whose default is an integer above 1, with that default."""
    try:
        parameters = inspect.signature(get_inputs).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in parameters if type(p.default) is int and p.default > 1}
