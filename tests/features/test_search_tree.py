"""A search as a tree: what each version was made from, its time and state, and which can be looked at."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from accelopt_agent.candidate import THEN
from accelopt_agent.search.history import PastRun, PastStep
from accelopt_lsp.features.chart_svg import chart_svg
from accelopt_lsp.features.search_tree import VERSIONS, search_tree
from accelopt_memory.records import Run
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

RUN = Run("r", "/k.py", "silu", "hash", "trn1", started="2026-11-29T04:00:00")


def took(us: float) -> PastStep:
    return PastStep(1, "", "took silu as it was", latency=latency(us))


def latency(us: float) -> Latency:
    return Latency(us, us * 0.8, us * 1.3, Known.ESTIMATED)


def tried(*steps: str, us: float | None = None, outcome: str = "faster") -> PastStep:
    time = latency(us) if us is not None else Latency()
    return PastStep(2, "", f"tried {steps[-1]}", outcome, "rule:r", time, path=THEN.join(steps) + ".")


def checked(*steps: str, outcome: str = "checked") -> PastStep:
    return PastStep(3, "", "checked it", outcome, path=THEN.join(steps))


SEARCH = PastRun(RUN, (
    took(100), tried("Hoist", us=80), tried("Tile", us=120, outcome="slower"), tried("Hoist", "Fuse", us=50),
    tried("Hoist", "Split", outcome="failed: it does not parse"), checked("Hoist", "Fuse"),
    checked("Hoist", outcome="refused by the gate: a result differs"), tried("Gone", "Widen", us=90),
))  # fmt: skip


def test_each_version_stands_below_what_it_was_made_from() -> None:
    chart = search_tree(SEARCH, {"Hoist; then: Fuse.": "abcd"}, "hash")
    assert chart is not None
    assert [(row[0], row[1], row[2], row[4]) for row in chart.rows] == [
        ("1", "", "the kernel as it was", "as it was"),
        ("2", "1", "Hoist", "refused: a result differs"),
        ("3", "2", "Fuse", "checked"),
        ("4", "2", "Split", "failed: it does not parse"),
        ("5", "1", "Widen", "faster"),
        ("6", "1", "Tile", "no faster"),
    ]
    assert list(chart.versions) == ["", "", "abcd", "", "", ""]
    links, points = (one["data"]["values"] for one in chart.spec["layer"])
    assert [(one["from"], one["time"]) for one in links] == [
        (100, 80),
        (80, 50),
        (80, 80),
        (100, 90),
        (100, 120),
    ]
    assert ([one.get("version") for one in points] == list(chart.versions[:2]) and None) or [
        None, None, "abcd", None, None, None,
    ]  # fmt: skip
    assert "earlier text" not in chart.about
    assert "earlier text" in (search_tree(SEARCH, {}, "other") or chart).about


def test_of_a_long_search_the_fastest_are_shown_with_what_they_were_made_from() -> None:
    slow = tuple(tried(f"Slow {n}", us=200 + n) for n in range(60))
    last = tuple(tried("Slow 59", "Then", f"Fast {n}", us=10 + n) for n in range(VERSIONS))
    chart = search_tree(PastRun(RUN, (took(100), *slow, tried("Slow 59", "Then", us=300), *last)), {})
    assert chart is not None
    names = [row[2] for row in chart.rows]
    assert names[:3] == ["the kernel as it was", "Slow 59", "Then"]
    assert len(names) == VERSIONS + 3
    assert f"{VERSIONS + 3} of {VERSIONS + 62} versions" in chart.about


@pytest.mark.parametrize(
    "steps",
    [(), (took(100),), (tried("Hoist", us=80),), (took(100), replace(tried("Hoist", us=80), path=""))],
    ids=["empty", "nothing tried", "no original", "of an older version"],
)
def test_there_is_no_picture_of_nothing(steps: tuple[PastStep, ...]) -> None:
    assert search_tree(PastRun(RUN, steps), {}) is None


def test_it_is_drawn_without_a_library_and_without_markup_of_a_model() -> None:
    evil = "<script>alert(1)</script>"
    chart = search_tree(PastRun(RUN, (took(100), tried(evil, us=50))), {})
    assert chart is not None
    picture = chart_svg(chart)
    assert "<script" not in picture
    assert len(ElementTree.fromstring(picture).findall(".//circle")) == 2
