"""The names that the rules know, from ``rules.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, TypeVar

_Entry = TypeVar("_Entry")
_DATA: dict[str, Any] = json.loads(
    resources.files(__package__).joinpath("rules.json").read_text(encoding="utf-8")
)
WORDS: Mapping[str, tuple[str, ...]] = {group: tuple(names) for group, names in _DATA["words"].items()}
#: What each cause is called.
CAUSES: Mapping[str, str] = {cause: text for cause, (text, *_) in _DATA["causes"].items()}
#: The cause that each name tells: an imported one, ``*.field`` or ``*.method()`` of any object.
SOURCES: Mapping[str, str] = {name: cause for cause, (_, *names) in _DATA["causes"].items() for name in names}
_RULES: Mapping[str, tuple[str, bool]] = {
    name: (code, kind == "certain")
    for kind in ("told", "certain")
    for code, names in _DATA[kind].items()
    for name in names
}


def rule_for(dotted: str) -> tuple[str, bool] | None:
    """Return the code for a dotted name, and whether it is certain. None where it is harmless."""
    return entry_of(dotted, _RULES)


def entry_of(dotted: str, table: Mapping[str, _Entry]) -> _Entry | None:
    """Return the entry of the longest name in a table that ``dotted`` is or stands below."""
    while dotted not in table and "." in dotted:
        dotted = dotted.rpartition(".")[0]
    return table.get(dotted)
