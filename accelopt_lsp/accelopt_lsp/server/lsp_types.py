"""Import lsprotocol's types without building all of them.

Its 554 attrs classes take 0.4 s of processor time to build, most of what the server needs before it can serve; a
session uses about 50 of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

C = TypeVar("C", bound=type)

#: What attrs adds to a class that is asked for before anything else of it: by an instance, and by cattrs.
_ENTRIES = ("__init__", "__attrs_attrs__")


class _Unbuilt:
    """Stands for an attribute of a class that attrs has not built yet, and has it built when it is asked for."""

    def __init__(self, name: str, build: Callable[[], None]) -> None:
        self._name, self._build = name, build

    def __get__(self, instance: object, owner: type) -> Any:
        self._build()
        return getattr(owner if instance is None else instance, self._name)


def import_lsp_types() -> None:
    """Import ``lsprotocol.types``, each class to be built by attrs when it is first used.

    The types behave as ever, but for one thing: their instances have no slots, as attrs makes a class with slots anew.
    Where they were imported before, nothing changes.
    """
    if "lsprotocol.types" in sys.modules:
        return
    define = attrs.define
    vars(attrs)["define"] = _define_later
    try:
        from lsprotocol import types  # noqa: F401  (imported for its effect)
    finally:
        vars(attrs)["define"] = define
    from lsprotocol import _hooks

    # lsprotocol would look at all classes here; each resolves the names in its own annotations when it is built.
    _hooks._resolved_forward_references = True


def _define_later(cls: C) -> C:
    def build() -> None:
        from lsprotocol import types

        for name in _ENTRIES:
            delattr(cls, name)
        attrs.define(cls, slots=False)
        attrs.resolve_types(cls, dict(types.ALL_TYPES_MAP), {})  # which adds to the map

    for name in _ENTRIES:
        setattr(cls, name, _Unbuilt(name, build))
    return cls
