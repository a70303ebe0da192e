"""A chart as a Vega-Lite description with a table that says the same, and the pieces that charts are made of.

Every scale names its domain and every datum its tooltip (``about``), so that ``chart_svg.py`` can draw a chart without
Vega. Colours are an editor's theme's, with a fallback where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Spec = dict[str, Any]
Datum = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH, ROW = 720, 22
#: Pixels of one letter of a label, about.
LETTER = 6.2

TEXT = "currentColor"
BLUE = "var(--vscode-charts-blue, #3b6fb6)"
#: Not the theme's orange, which is that of matches in the minimap: brown on dark.
ORANGE = "var(--vscode-charts-yellow, #d1791f)"
GREEN = "var(--vscode-charts-green, #3f9a57)"
PURPLE = "var(--vscode-charts-purple, #8a5fb0)"
RED = "var(--vscode-charts-red, #b00020)"
GREY = "var(--vscode-descriptionForeground, #7d7d7d)"
#: Marks what the editor's cursor is on.
LIT = "var(--vscode-focusBorder, #0078d4)"
#: The fill of times in which nothing is done; whoever shows a chart defines the pattern of that name.
HATCH = "url(#waits)"


@dataclass(frozen=True)
class Chart:
    """``about`` says in a sentence what is shown and how it is known; ``rows`` say what the marks say.

    ``lines`` has the 1-based source line of each row, 0 where it has none; ``versions`` the id of the checked version
    that it is about, "" where it is about none.
    """

    name: str
    title: str
    about: str
    spec: Spec
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    lines: Sequence[int] = field(default_factory=tuple)
    versions: Sequence[str] = field(default_factory=tuple)


def spec(layers: Iterable[Spec], height: int, width: int = WIDTH) -> Spec:
    """Return a description of ``layers`` over each other; ``cursor`` is the line to light."""
    axis = {
        "labelColor": TEXT, "titleColor": TEXT, "domainColor": GREY, "tickColor": GREY, "gridColor": GREY,
        "gridOpacity": 0.2, "titleFontWeight": "normal", "labelLimit": 320,
    }  # fmt: skip
    return {
        "$schema": SCHEMA,
        "width": width,
        "height": height,
        "background": None,
        "params": [{"name": "cursor", "value": 0}],
        "layer": list(layers),
        "config": {"view": {"stroke": None}, "axis": axis},
    }


def layer(mark: str, data: Sequence[Datum], encoding: Spec, **properties: Any) -> Spec:
    """Return one kind of mark for ``data``; those with a line or a version can be clicked, and those with the line of
    the cursor are framed."""
    shown = {"tooltip": {"field": "about", "type": "nominal"}, **encoding}
    if any(datum.get("line") or datum.get("version") for datum in data):
        properties["cursor"] = "pointer"
    if any(datum.get("line") for datum in data) and properties.get("color") != HATCH:
        lit = {"test": "datum.line === cursor", "value": LIT}
        shown["stroke"] = {"condition": lit, "value": "transparent"}
    return {"mark": {"type": mark, **properties}, "data": {"values": list(data)}, "encoding": shown}


def amount(
    name: str, title: str, domain: tuple[float, float], log: bool = False, reverse: bool = False
) -> Spec:
    """Return the channel of a number, with round ticks in ``domain``."""
    scale = {"type": "log" if log else "linear", "domain": list(domain), "nice": False, "reverse": reverse}
    ticks = _log_ticks(*domain) if log else _ticks(*domain)
    axis = {"title": title, "values": ticks, "format": ",~r"}
    return {"field": name, "type": "quantitative", "scale": scale, "axis": axis, "stack": None}


def band(name: str, values: Sequence[str], left: bool = False) -> Spec:
    """Return the channel of a name, one row or column for each of ``values``; the names of rows may begin ``left``."""
    scale = {"domain": list(values), "paddingInner": 0.2, "paddingOuter": 0.1}
    begins = {"labelAlign": "left", "labelPadding": LETTER * max(map(len, values))} if left else {}
    return {
        "field": name,
        "type": "nominal",
        "scale": scale,
        "axis": {"title": None, "labelAngle": 0, **begins},
        "sort": None,
    }


def palette(name: str, colours: dict[str, str]) -> Spec:
    """Return the channel of a colour by name."""
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": name, "type": "nominal", "scale": scale, "legend": None}


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from ``low`` to ``high``."""
    rough = max(high - low, 1e-12) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    first = math.ceil(low / step)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2, 5 times the powers of ten from ``low`` to ``high``; more within a decade, fewer over many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    wanted = (1, 1.5, 2, 3, 4, 5, 7) if high < 10 * low else (1, 2, 5) if len(powers) <= 4 else (1,)
    return [m * 10.0**p for p in powers for m in wanted if low <= m * 10.0**p <= high]
