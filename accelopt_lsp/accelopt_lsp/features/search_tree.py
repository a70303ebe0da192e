"""The versions that a search tried, by what each was made from, as a chart: time, state, what the last step does."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from accelopt_agent.candidate import THEN
from accelopt_agent.search.history import PastRun
from accelopt_lsp.features.chart import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    ROW,
    Chart,
    amount,
    band,
    layer,
    palette,
    spec,
)
from accelopt_lsp.features.wording import duration_interval
from accelopt_profiling.duration import unit_of
from accelopt_profiling.measurement import Latency

#: So many versions are shown, the fastest and what they were made from.
VERSIONS = 24

#: Characters of a row's name.
LABEL = 46

_COLOURS = {
    "as it was": BLUE,
    "checked": GREEN,
    "faster": ORANGE,
    "no faster": GREY,
    "refused": RED,
    "failed": RED,
}


@dataclass
class _Tried:
    """``steps`` led to it, the oldest first; ``latency`` has no time where it could not be run."""

    steps: tuple[str, ...]
    state: str
    latency: Latency | None
    why: str = ""
    children: list[_Tried] = field(default_factory=list)

    @property
    def us(self) -> float:
        return self.latency.us if self.latency is not None and self.latency.us is not None else float("inf")


def search_tree(past: PastRun, offered: Mapping[str, str], content_hash: str = "") -> Chart | None:
    """Return the chart of a run; None where it tried too little, or is of a version that noted no paths.

    ``offered`` are the ids of the versions that can be looked at, by the summary of their steps. ``content_hash`` is
    that of the kernel as it is now.
    """
    root = _tree(past)
    if root is None or not root.children or root.us == float("inf"):
        return None
    everything = list(_walk(root))
    fastest = sorted(everything, key=lambda at: at[0].us)[:VERSIONS]
    shown = {one.steps for version, ancestors in fastest for one in (version, *ancestors)}
    size, unit = unit_of(root.us)
    points, links, rows, versions = [], [], [], []
    numbers: dict[tuple[str, ...], int] = {}
    ids = {_steps(summary): one for summary, one in offered.items()}
    for version, ancestors in everything:
        if version.steps not in shown:
            continue
        number = numbers[version.steps] = len(numbers) + 1
        parent = ancestors[-1] if ancestors else None
        time = version.latency if version.us < float("inf") else None
        us = version.us if time is not None or parent is None else parent.us
        step = version.steps[-1] if version.steps else "the kernel as it was"
        indent = "› " * len(ancestors)
        row = f"{number} {indent}{textwrap.shorten(step, max(20, LABEL - len(indent)), placeholder='...')}"
        state = f"{version.state}: {version.why}" if version.why else version.state
        took = duration_interval(time) if time is not None else ""
        about = f"{number}: {step}. {', '.join(filter(None, (took, state)))}"
        one = {"row": row, "time": us / size, "is": version.state, "about": about}
        if version.steps in ids:
            one["version"] = ids[version.steps]
        points.append(one)
        if parent is not None:
            links.append({"row": row, "time": us / size, "from": parent.us / size, "about": about})
        rows.append(
            (str(number), str(numbers[parent.steps]) if parent is not None else "", step, took, state)
        )
        versions.append(ids.get(version.steps, ""))
    x = amount("time", f"time ({unit})", (0, max(float(str(point["time"])) for point in points)))
    at = {"y": band("row", [str(point["row"]) for point in points], left=True), "x": x}
    layers = [
        layer("rule", links, {**at, "x2": {"field": "from"}}, strokeWidth=2, color=GREY),
        layer("point", points, {**at, "color": palette("is", _COLOURS)}, filled=True, size=70),
    ]
    older = " It was of an earlier text." if content_hash not in ("", past.run.kernel_hash) else ""
    some = f"{len(points)} of {len(everything)} versions, the fastest and what they were made from"
    about = (
        f"The search on {past.run.started[:10]}: {some if len(points) < len(everything) else 'all its versions'}, each "
        "below what it was made from. The line goes from that one's time to its own; green: checked, yellow: faster "
        f"and not checked, red: refused or failed.{older}"
    )
    return Chart(
        "search", "What the search tried", about, spec(layers, ROW * len(points)),
        ("version", "from", "step", "time", "state"), rows, versions=versions,
    )  # fmt: skip


def _tree(past: PastRun) -> _Tried | None:
    """Return the kernel as it was with what was made from it; a version whose parent is not known stands below it."""
    root: _Tried | None = None
    known: dict[tuple[str, ...], _Tried] = {}
    for step in past.steps:
        steps = _steps(step.path)
        state, _, why = step.outcome.partition(": ")
        if step.what.startswith("took "):
            root = root or _Tried((), "as it was", step.latency)
        elif steps and step.what.startswith("tried "):
            state = "no faster" if state in ("slower", "unclear") else state
            known.setdefault(steps, _Tried(steps, state, step.latency, why))
        elif steps in known and step.what.startswith("checked "):
            known[steps].state, known[steps].why = state.partition(" ")[0], why
    for steps, version in known.items():
        before = (known[steps[:n]] for n in range(len(steps) - 1, 0, -1) if steps[:n] in known)
        if (parent := next(before, root)) is not None:
            parent.children.append(version)
    return root


def _steps(summary: str) -> tuple[str, ...]:
    """Return the steps of a version's summary, () of none."""
    return tuple(step.rstrip(".") for step in summary.split(THEN)) if summary else ()


def _walk(version: _Tried, ancestors: tuple[_Tried, ...] = ()) -> Iterator[tuple[_Tried, tuple[_Tried, ...]]]:
    """Yield a version and what was made from it, the fastest first, each with its ancestors."""
    yield version, ancestors
    for child in sorted(version.children, key=lambda one: one.us):
        yield from _walk(child, (*ancestors, version))
