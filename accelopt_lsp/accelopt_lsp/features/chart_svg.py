"""Draw a chart's description as SVG that loads and runs nothing: for files, which no chart library reads.

It knows the part of Vega-Lite that ``chart.py`` writes: layers of bars, rectangles, rules, points, lines and texts over
one horizontal and one vertical scale.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from accelopt_lsp.features.chart import BLUE, HATCH, LETTER, TEXT, Chart, Datum, Spec

STYLE = """
svg.chart { width: 100%; max-width: 62rem; height: auto; } svg.chart text { font: 11px system-ui, sans-serif; }
"""
_PATTERN = (
    '<defs><pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="2" height="6" fill="currentColor" fill-opacity=".45"></rect></pattern></defs>'
)
_TOP, _BOTTOM, _RIGHT = 12, 34, 16

_ANCHORS = {"left": "start", "center": "middle", "right": "end"}

_THEME = re.compile(r"var\([\w-]+, (#\w+)\)")

#: The text of an image, which cannot know the colour of what it stands on: 4:1 on white as on VS Code's dark grey.
INK = "#7d7d7d"

_Scale = Callable[[Any], float]


def chart_svg(chart: Chart) -> str:
    """Return the picture of a chart, its marks with their tooltips."""
    spec = chart.spec
    encoding = spec["layer"][0]["encoding"]
    width, height = spec["width"], spec["height"]
    labels = encoding["y"]["scale"]["domain"] if encoding["y"]["type"] == "nominal" else ["000,000"]
    left = 30 + LETTER * max(map(len, labels))
    x, y = _scale(encoding["x"], 0, width), _scale(encoding["y"], height, 0)
    marks = "".join(mark for one in spec["layer"] for mark in _marks(one, x, y))
    title = escape(chart.title)
    return (
        f'<svg class="chart" viewBox="{-left:.0f} {-_TOP} {width + left + _RIGHT:.0f} {height + _TOP + _BOTTOM}" '
        f'role="img" aria-label="{title}">{_PATTERN if HATCH in marks else ""}'
        f"{''.join(_axes(encoding, x, y, width, height, left))}{marks}</svg>"
    )


def chart_image(chart: Chart) -> str:
    """Return the picture of a chart as a ``data:`` address, in colours that read on light and on dark."""
    picture = chart_svg(chart).replace(TEXT, INK)
    _, _, width, height = re.findall(r"-?\d+", picture.partition('viewBox="')[2])[:4]
    size = f'width="{width}" height="{height}" font-family="sans-serif" font-size="11"'
    whole = picture.replace("<svg", f'<svg xmlns="http://www.w3.org/2000/svg" {size}', 1)
    return f"data:image/svg+xml;base64,{b64encode(whole.encode()).decode()}"


def _scale(channel: Spec, start: float, end: float) -> _Scale:
    """Return the place in pixels of a value, of a name the middle of its band."""
    described = channel["scale"]
    if channel["type"] == "nominal":
        names = described["domain"]
        low, step = min(start, end), abs(end - start) / max(1, len(names))
        return lambda name: low + step * (names.index(name) + 0.5)
    to = math.log if described["type"] == "log" else float
    low, high = map(to, described["domain"])
    if described["reverse"]:
        low, high = high, low
    return lambda value: start + (end - start) * (to(value) - low) / ((high - low) or 1.0)


def _axes(encoding: Spec, x: _Scale, y: _Scale, width: float, height: float, left: float) -> Iterator[str]:
    for value, label in _labels(encoding["x"]):
        at = x(value)
        yield _line(at, 0, x2=at, y2=height, opacity=0.15)
        yield _text(at, height + 14, label, "middle")
    for value, label in _labels(encoding["y"]):
        at = y(value)
        if encoding["y"]["type"] != "nominal":
            yield _line(0, at, x2=width, y2=at, opacity=0.15)
        begins = encoding["y"]["axis"].get("labelAlign") == "left"
        yield _text(4 - left, at + 4, label, "start") if begins else _text(-6, at + 4, label, "end")
    yield _line(0, height, x2=width, y2=height, opacity=0.5)
    if title := encoding["x"]["axis"]["title"]:
        yield _text(width / 2, height + 30, title, "middle")
    if title := encoding["y"]["axis"]["title"]:
        yield (
            f'<text transform="translate({12 - left:.0f} {height / 2:.0f}) rotate(-90)" text-anchor="middle" '
            f'fill="{TEXT}">{escape(title)}</text>'
        )


def _labels(channel: Spec) -> list[tuple[Any, str]]:
    if channel["type"] == "nominal":
        return [(name, name) for name in channel["scale"]["domain"]]
    return [(value, f"{value:,g}") for value in channel["axis"]["values"]]


def _marks(layer: Spec, x: _Scale, y: _Scale) -> Iterator[str]:
    mark, encoding = layer["mark"], layer["encoding"]
    data: Sequence[Datum] = layer["data"]["values"]
    if mark["type"] == "line":
        places = " ".join(
            f"{x(d[encoding['x']['field']]):.1f},{y(d[encoding['y']['field']]):.1f}" for d in data
        )
        stroke = _THEME.sub(r"\1", mark["stroke"])
        dash = f' stroke-dasharray="{" ".join(map(str, mark["strokeDash"]))}"' if "strokeDash" in mark else ""
        yield f'<polyline points="{places}" fill="none" stroke="{stroke}" stroke-width="1.5"{dash}></polyline>'
        return
    for datum in data:
        yield _mark(mark, encoding, datum, x, y)


def _mark(mark: Spec, encoding: Spec, datum: Datum, x: _Scale, y: _Scale) -> str:
    at_x, at_y = x(datum[encoding["x"]["field"]]), y(datum[encoding["y"]["field"]])
    to_x = x(datum[encoding["x2"]["field"]]) if "x2" in encoding else at_x
    to_y = y(datum[encoding["y2"]["field"]]) if "y2" in encoding else at_y
    colour = _colour(mark, encoding, datum)
    title = f"<title>{escape(str(datum.get('about', '')))}</title>"
    if mark["type"] == "text":
        return _text(
            at_x + mark.get("dx", 0),
            at_y + mark.get("dy", 0) + 4,
            datum["text"],
            _ANCHORS[mark["align"]],
        )
    if mark["type"] == "point":
        return f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="4.5" fill="{colour}">{title}</circle>'
    if mark["type"] == "rule":
        return _line(at_x, at_y, x2=to_x, y2=to_y, colour=colour, width=2, title=title)
    first, last = sorted((at_x, to_x))
    opacity = datum[encoding["opacity"]["field"]] if "opacity" in encoding else 1
    height = mark.get("height", 16)
    top = at_y - height / 2
    faint = "" if opacity == 1 else f' fill-opacity="{opacity:.2f}"'
    return (
        f'<rect x="{first:.1f}" y="{top:g}" width="{max(last - first, 0.4):.1f}" height="{height}" '
        f'fill="{colour}"{faint}>{title}</rect>'
    )


def _colour(mark: Spec, encoding: Spec, datum: Datum) -> str:
    """Return a mark's colour, of a theme's what it falls back to."""
    colour: str = mark.get("color", BLUE)
    if "color" in encoding:
        scale = encoding["color"]["scale"]
        colour = scale["range"][scale["domain"].index(datum[encoding["color"]["field"]])]
    return _THEME.sub(r"\1", colour)


def _line(
    x: float,
    y: float,
    x2: float,
    y2: float,
    colour: str = TEXT,
    width: float = 1,
    opacity: float = 1,
    title: str = "",
) -> str:
    return (
        f'<line x1="{x:.1f}" x2="{x2:.1f}" y1="{y:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}" '
        f'stroke-opacity="{opacity}">{title}</line>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{TEXT}">{escape(text)}</text>'
