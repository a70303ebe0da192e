"""Records to and from rows: fields that are no column's plain type are kept as JSON under ``<name>_json``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar

from accelopt_profiling.plain import from_plain, to_plain

T = TypeVar("T")


def now() -> str:
    """The time of an entry: UTC, ISO format, to the microsecond, so that text order is time order."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def to_json(value: Any) -> str:
    return json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))


def to_row(record: Any, **extra: Any) -> dict[str, Any]:
    """The columns of a record (a dataclass instance), and ``extra`` ones such as its id."""
    row: dict[str, Any] = dict(extra)
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, (str, int, float, type(None))):
            row[field.name] = int(value) if isinstance(value, bool) else value
        else:
            row[f"{field.name}_json"] = to_json(value)
    return row


def from_row(cls: type[T], row: Mapping[str, Any]) -> T:
    """The record of a row. A column without a field is ignored: a newer version may have added it."""
    data: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if f"{field.name}_json" in row:
            data[field.name] = json.loads(row[f"{field.name}_json"])
        elif field.name in row:
            value = row[field.name]
            data[field.name] = bool(value) if field.type == "bool" else value
    return from_plain(cls, data)
