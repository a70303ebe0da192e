"""Tells a model the figures of a target in a few lines, from the target's data file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from accelopt_profiling.targets import UnknownTargetError, load_target

#: Figures of a GPU that say nothing about how to write a kernel.
_UNTOLD = frozenset(
    {"dram_bytes", "register_allocation", "shared_memory_allocation", "shared_memory_reserved_per_program"}
)
#: The parts of a NeuronCore's file that are told, in this order.
_PARTS = ("limits", "clock_ghz", "peaks", "dma", "cost")
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@cache
def target_text(name: str) -> str:
    """Return the target's sizes, rates and costs as a Markdown list, one line per part; "" for an unknown target."""
    try:
        target = load_target(name)
    except UnknownTargetError:
        return ""
    if target.kind == "gpu":
        figures = {k: (f.value, f.unit) for k, f in target.figures.items() if k not in _UNTOLD}
        hardware = [_figure(k, v, u) for k, (v, u) in figures.items() if not k.startswith("model.")]
        modelled = [_figure(k[6:], v, u) for k, (v, u) in figures.items() if k.startswith("model.") and u]
        lines = [
            f"- {target.title}: {', '.join(hardware)}",
            f"- assumed by the time model: {', '.join(modelled)}",
        ]
    else:
        lines = [f"- {target.title}"]
        for part in _PARTS:
            entries = ", ".join(_entries(target.data.get(part, {})))
            lines += [f"- {part.replace('_', ' ')}: {entries}"] if entries else []
    return "\n".join(lines)


def _entries(part: Mapping[str, Any]) -> Iterator[str]:
    for name, entry in part.items():
        if isinstance(entry, Mapping) and isinstance(entry.get("value"), (int, float)):
            yield _figure(name, entry["value"], str(entry.get("unit", "")))


def _figure(name: str, value: float, unit: str) -> str:
    rate = unit.endswith(("/s", "Hz"))
    scale, letter = next(((s, x) for s, x in _SCALES if rate and value >= max(s, 1e5)), (1.0, ""))
    figure = f"{value / scale:.4g}" if scale > 1 or value % 1 else f"{value:.0f}"
    return f"{name.replace('_', ' ').replace('.', ' ')} {figure} {letter}{unit}".strip()
