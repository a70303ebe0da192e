"""The charts of a kernel: what each shows, that its table says the same, and that the static picture is one."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from accelopt_lsp.features.chart import HATCH, Chart, amount
from accelopt_lsp.features.chart_svg import chart_image, chart_svg
from accelopt_lsp.features.hover import hover
from accelopt_lsp.features.pictures import LINES, bandwidth, charts, small_roofline
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_lsp.state.version import REMEMBERED, Commit, Version, with_version
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import KernelMeasurement, Latency, LineCost
from accelopt_profiling.quantity import Known, estimated, executed
from accelopt_profiling.timeline import Spans, Timeline

HOSTILE = "<script>alert(1)</script>"
SMALL = Timeline(
    10.0, ["VectorE", "DMA"], ["tensor_tensor", "load"], [[0.0, 1.0], [0.5, 0.0]],
    Spans([1, 0], [1, 0], [1, 2], [0.0, 5.0], [2.5, 5.0], [-1, 0], ["", "operand"]), 10.0,
)  # fmt: skip
NKI = KernelMeasurement(
    "silu", 1, "nki", "trn1", latency=Latency(100.0, 75.0, 140.0, Known.ESTIMATED), percent_of_peak=30.0,
    bound="VectorE",
    quantities={"dma_read_bytes": executed(3e6, "B"), "dma_write_bytes": executed(1e6, "B")},
    lines=[LineCost(1, "DMA est. 25 us", 0.25, {"dma_bytes": executed(3e6, "B")}, engine="DMA"),
           LineCost(2, "VectorE est. 50 us", 0.5, engine="VectorE")],
    content_hash="a", timeline=SMALL,
)  # fmt: skip
TRITON = replace(
    NKI, dialect="triton", target="h100", timeline=None, quantities={"dram_bytes": estimated(8e7, 5e7, 2e8, "bytes")},
    lines=[LineCost(1, "read 16.8 MB", 1.0)],
)  # fmt: skip


def by_name(result: KernelMeasurement, versions: tuple[Version, ...] = ()) -> dict[str, Chart]:
    return {chart.name: chart for chart in charts(result, ["a = load()", "b = a"], versions)}


def data(chart: Chart, mark: str) -> list[dict[str, object]]:
    return next(one["data"]["values"] for one in chart.spec["layer"] if one["mark"]["type"] == mark)


def test_each_dialect_has_the_charts_that_enough_is_known_for() -> None:
    assert list(by_name(NKI)) == ["roofline", "lines", "busy", "engines"]
    assert list(by_name(TRITON)) == ["roofline", "lines"]
    assert list(by_name(KernelMeasurement("k", 1, "nki", "trn1"))) == []
    assert "roofline" not in by_name(replace(NKI, target="no such device"))


@pytest.mark.parametrize("result", [NKI, TRITON], ids=["nki", "triton"])
def test_the_roofs_are_the_bandwidth_and_the_least_time(result: KernelMeasurement) -> None:
    roofline = by_name(result)["roofline"]
    slanted, flat = (one["data"]["values"] for one in roofline.spec["layer"] if one["mark"]["type"] == "line")
    rate = bandwidth(result)
    assert rate is not None
    for end in slanted:
        assert end["time"] == pytest.approx(end["moved"] * 1e6 / rate * 1e6)
    assert {end["time"] for end in flat} == {30.0}
    (mark,) = data(roofline, "point")
    assert (mark["low"], mark["time"], mark["high"]) == (75.0, 100.0, 140.0)
    assert mark["from"] <= mark["moved"] <= mark["to"]  # type: ignore[operator]
    assert str(result.latency.known) in roofline.rows[0]


def test_versions_of_the_same_sizes_stand_beside_each_other_and_no_others() -> None:
    versions = with_version((), NKI)
    versions = with_version(
        versions, replace(NKI, content_hash="b", latency=Latency(80.0, 70.0, 90.0, Known.ESTIMATED))
    )
    versions = with_version(versions, replace(NKI, content_hash="c", case="x 8x8"))
    versions = with_version(versions, NKI, accepted=True)
    shown = by_name(NKI, versions)
    assert [point["is"] for point in data(shown["history"], "point")] == ["saved", "saved", "accepted"]
    assert [row[0] for row in shown["history"].rows] == ["save 1", "save 2", "accepted version 3, shown"]
    assert [mark["is"] for mark in data(shown["roofline"], "point")] == ["before", "before", "now"]


def test_growing_results_are_one_version_and_the_oldest_are_forgotten() -> None:
    versions = with_version((), NKI, accepted=True)
    assert with_version(versions, replace(NKI, bound="DMA"))[0] == replace(versions[0], bound="DMA")
    assert with_version(versions, KernelMeasurement("silu", 1, "nki", "trn1", content_hash="b")) == versions
    for n in range(2 * REMEMBERED):
        versions = with_version(versions, replace(NKI, content_hash=str(n)))
    assert [version.content_hash for version in versions] == [
        str(n) for n in range(REMEMBERED, 2 * REMEMBERED)
    ]


def test_a_commit_stands_at_the_version_that_it_holds() -> None:
    versions = [replace(v, content_hash=str(n), at=100.0 * n) for n, v in enumerate((Version.of(NKI),) * 3)]
    commits = [Commit("aaa", 50, "first"), Commit("bbb", 190, "later"), Commit("ccc", 195, "last")]
    history = next(c for c in charts(NKI, [], versions, commits) if c.name == "history")
    assert [row[0] for row in history.rows] == [
        "save 1, committed as aaa: first", "save 2, committed as ccc: last", "save 3, shown",
    ]  # fmt: skip
    assert [mark["text"] for mark in data(history, "text")] == ["aaa", "ccc"]
    assert "commit" in history.about
    alone = next(c for c in charts(NKI, [], versions) if c.name == "history")
    assert "commit" not in alone.about


def test_a_constant_of_the_module_makes_another_version() -> None:
    versions = with_version((), NKI, rest_hash="1")
    slow = replace(NKI, latency=Latency(200.0, 150.0, 280.0, Known.ESTIMATED))
    assert len(with_version(versions, slow, rest_hash="1")) == 1
    assert [v.latency.us for v in with_version(versions, slow, rest_hash="2")] == [100.0, 200.0]
    accepted = with_version(versions, replace(NKI, content_hash="b"), accepted=True)
    profiled = with_version(accepted, replace(NKI, content_hash="b", bound="DMA"), rest_hash="2")
    assert [(v.accepted, v.bound) for v in profiled] == [(False, "VectorE"), (True, "DMA")]


def test_bars_are_the_costliest_lines_in_the_order_of_the_text() -> None:
    many = replace(NKI, lines=[LineCost(n, "cost", n / 100, engine="DMA") for n in range(1, 30)])
    chart = by_name(many)["lines"]
    assert list(chart.lines) == list(range(30 - LINES, 30)) == [bar["line"] for bar in data(chart, "bar")]
    assert "of 29 lines" in chart.about


def test_work_leads_to_its_line_and_a_wait_says_for_what() -> None:
    chart = by_name(NKI)["engines"]
    work, waits = (one["data"]["values"] for one in chart.spec["layer"])
    assert [(one["lane"], one["from"], one["to"], one["line"]) for one in work] == [
        ("DMA", 0, 2.5, 1),
        ("VectorE", 5, 10, 2),
    ]
    assert work[0]["about"] == "load, 2.5 us, line 1: a = load()"
    (wait,) = waits
    assert (wait["lane"], wait["from"], wait["to"], wait["line"]) == ("VectorE", 0, 5, 2)
    assert "waits 5 us for load on line 1 (DMA), which writes an operand" in wait["about"]
    assert list(chart.lines) == [1, 2]
    assert chart.rows[1][-1] == "5 us for load on line 1 (DMA)"
    busy = by_name(NKI)["busy"]
    assert [(one["lane"], one["share"]) for one in data(busy, "rect")] == [("VectorE", 1.0), ("DMA", 0.5)]
    assert list(busy.rows) == [("VectorE", "50%"), ("DMA", "25%")]


def test_the_middle_of_a_timeline_keeps_what_is_under_way_and_who_is_waited_for() -> None:
    count = 1000
    spans = Spans(
        [0] * count, [0] * count, list(range(1, count + 1)), [float(n) for n in range(count)], [1.0] * count,
        [n - 1 for n in range(count)], ["operand"] * count,
    )  # fmt: skip
    spans.us[100] = 700.0
    whole = Timeline(1000.0, ["DMA"], ["load"], [[1.0]], spans, 1000.0)
    middle = whole.middle(100)
    assert middle.spans.line == [101, *range(451, 551)]
    assert middle.spans.cause == [-1, -1, *range(1, 100)]
    assert middle.middle(101) is middle
    assert SMALL.with_lines(lambda line: line + 3).spans.line == [4, 5]


@pytest.mark.parametrize(
    "chart", [*charts(NKI, ["a", "b"], (*with_version((), NKI),) * 2), *charts(TRITON, [])]
)
def test_a_static_picture_holds_every_mark(chart: Chart) -> None:
    picture = ElementTree.fromstring(chart_svg(chart))
    marks = [one for one in chart.spec["layer"] if one["mark"]["type"] not in ("line", "text")]
    assert len(picture.findall(".//title")) == sum(len(one["data"]["values"]) for one in marks)
    assert "var(" not in chart_svg(chart), "a file has no theme"
    assert (picture.find(".//pattern") is not None) == (HATCH in json.dumps(chart.spec))
    assert len(chart.lines) in (0, len(chart.rows))
    assert {len(row) for row in chart.rows} == {len(chart.columns)}


def test_bars_stand_where_the_work_is() -> None:
    bars = re.findall(
        r'<rect x="([\d.]+)"[^>]* width="([\d.]+)" [^>]*><title>', chart_svg(by_name(NKI)["engines"])
    )
    assert [(float(x), float(width)) for x, width in bars] == [(0, 180), (360, 360), (0, 360)]


def test_nothing_of_a_kernel_becomes_markup_in_a_picture() -> None:
    spans = Spans([0], [0], [1], [0.0], [5.0], [-1], [""])
    timeline = Timeline(10.0, [HOSTILE], [HOSTILE], [[1.0]], spans, 10.0)
    hostile = replace(NKI, name=HOSTILE, timeline=timeline, lines=[LineCost(1, HOSTILE, 0.5, engine=HOSTILE)])
    text = "".join(map(chart_svg, charts(hostile, [HOSTILE])))
    assert "<script" not in text
    assert text.count("&lt;script") >= 4


def luminance(colour: str) -> float:
    """The relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    parts = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("background", ["#f8f8f8", "#202020"], ids=["light", "dark"])
def test_a_hover_has_a_small_roofline_that_reads_on_both_themes(background: str) -> None:
    """The backgrounds are those of hovers in VS Code's Light Modern and Dark Modern; WCAG asks 3:1 of a picture."""
    versions = with_version(with_version((), NKI), replace(NKI, content_hash="b"))
    chart = small_roofline(NKI, versions)
    assert chart is not None
    head, _, data = chart_image(chart).partition(",")
    picture = base64.b64decode(data).decode()
    assert head == "data:image/svg+xml;base64"
    assert len(picture) < 6_000
    colours = set(re.findall(r'(?:fill|stroke)="(?!none)([^"]+)"', picture))
    assert len(colours) >= 2
    for colour in colours:
        light, dark = sorted((luminance(colour), luminance(background)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, colour
    root = ElementTree.fromstring(picture)
    assert 300 < int(root.attrib["width"]) < 450  # a hover of VS Code is 500 px wide
    assert int(root.attrib["height"]) < 150
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"at best 30 us", "time (us)", "moved to and from memory (MB)"} <= set(texts)


def test_the_picture_is_for_clients_that_draw_it_and_for_the_text_as_it_is() -> None:
    kernel = KernelState(Kernel("silu", "nki", 1, 1, 2, "a"), NKI)
    state = Document("file:///k.py", "/k.py", kernels=(kernel,), read=True)
    words = hover(state, 1, True)
    assert words is not None
    assert "data:" not in words
    assert hover(state, 1, False, picture=True) == hover(state, 1, False)
    shown = hover(state, 1, True, picture=True) or ""
    rows, rule, image, *details = shown.split("\n\n")
    assert [rows, rule, *details] == words.split("\n\n")
    assert re.fullmatch(
        r"!\[30 % of what trn1 can do at best\]\(data:image/svg\+xml;base64,[\w+/=]+\)", image
    )
    old = replace(state, kernels=(replace(kernel, touched=True),))
    assert "data:" not in (hover(old, 1, True, picture=True) or "")
    unknown = replace(state, kernels=(replace(kernel, shown=replace(NKI, percent_of_peak=None)),))
    assert "data:" not in (hover(unknown, 1, True, picture=True) or "")


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.25), (3, 8), (1, 9), (20, 700), (1, 1e9)])
def test_axes_have_a_few_round_numbers(low: float, high: float) -> None:
    for log in (True, False):
        ticks = amount("a", "a", (low, high), log=log)["axis"]["values"]
        assert 1 <= len(ticks) <= 12
        assert all(low <= tick <= high * 1.0001 for tick in ticks)
