"""Read the summary of a device profile. Its schema may change: missing fields are left out."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from accelopt_profiling.quantity import Quantity, measured
from accelopt_profiling.trainium.tools import DeviceError

_UPDATE = "The profiler's schema may have changed; attach the file of `accelopt doctor --bundle` to an issue."


@dataclass(frozen=True)
class ProfileSummary:
    """One profiled execution: every field as the profiler printed it. ``seconds`` is ``total_time``."""

    fields: dict[str, Any]
    seconds: float


@cache
def _table() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("profile_fields.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def read_summary(text: str, tool: str) -> ProfileSummary:
    """Read what ``view --output-format summary-json`` printed: ``{"<name>": {fields}}``, or the fields alone.

    Lines before the JSON, such as warnings, are passed over.

    Raises:
        DeviceError: it is empty, no JSON, or without a usable latency.
    """
    if not text.strip():
        raise DeviceError("bad-profile", f"{tool} printed an empty profile", "Capture the profile again.")
    try:
        data = _object_in(text)
    except (ValueError, RecursionError) as error:
        raise DeviceError(
            "bad-profile", f"{tool} printed no valid JSON: {error}", _UPDATE, text[:500]
        ) from None
    latency = _table()["latency"]
    fields = _with(data, latency)
    if fields is None:
        keys = ", ".join(list(data)[:8]) if isinstance(data, dict) else type(data).__name__
        raise DeviceError(
            "bad-profile", f"The profile of {tool} has no {latency!r} (it has {keys})", _UPDATE, text[:500]
        )
    seconds = fields[latency]
    if not _number(seconds) or seconds <= 0:
        message = f"The profile of {tool} gives {seconds!r} as {latency}, which is no time"
        raise DeviceError("bad-profile", message, "Capture the profile again.")
    return ProfileSummary(fields, float(seconds))


def _object_in(text: str) -> Any:
    """Parse the first JSON object that begins a line.

    Raises ValueError: there is none, or why the last one failed.
    """
    reason = ValueError("it has no JSON object")
    at = 0
    for line in text.split("\n"):
        if line.lstrip().startswith("{"):
            try:
                return json.JSONDecoder().raw_decode(text, at + len(line) - len(line.lstrip()))[0]
            except ValueError as error:
                reason = error
        at += len(line) + 1
    raise reason


def _with(data: Any, name: str, depth: int = 3) -> dict[str, Any] | None:
    """Find the object that has the key ``name``: the data itself, one of its values, or the first of a list in it."""
    if isinstance(data, dict):
        if name in data:
            return data
        for value in data.values():
            if depth and (owner := _with(value, name, depth - 1)) is not None:
                return owner
    if isinstance(data, list) and data and depth:
        return _with(data[0], name, depth - 1)
    return None


def quantities(summary: ProfileSummary) -> dict[str, Quantity]:
    """Return the quantities of a summary, all measured. Missing fields are left out."""
    table, fields = _table(), summary.fields
    values: dict[str, Quantity] = {}
    for field, meaning in table["fields"].items():
        if _number(fields.get(field)):
            values[meaning["quantity"]] = measured(float(fields[field]), unit=meaning["unit"])
    for engine, keys in table["engines"].items():
        share = busy_fraction(summary, engine)
        if share is not None:
            values[f"{engine} busy"] = measured(share * summary.seconds * 1e6, unit="us")
        elif _number(fields.get(keys["time"])):
            values[f"{engine} busy"] = measured(fields[keys["time"]] * 1e6, unit="us")
    return values


def busy_fraction(summary: ProfileSummary, engine: str) -> float | None:
    """Return the share of the time (0..1) in which an engine was busy."""
    value: Any = summary.fields.get(_table()["engines"][engine]["fraction"])
    return float(value) if _number(value) and 0 <= value <= 1.001 else None


def bound(summary: ProfileSummary) -> str | None:
    """Return what limits the kernel: the engine that was busy longest, "memory" for DMA."""
    shares = {e: s for e in _table()["engines"] if (s := busy_fraction(summary, e)) is not None}
    if not shares:
        return None
    engine = max(shares, key=lambda e: shares[e])
    return "memory" if engine == "DMA" else engine


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
