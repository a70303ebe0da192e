"""What is known of a kernel's cost, as charts: against the roofline, by line, by engine, over the versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelopt_lsp.features.chart import (
    BLUE,
    GREEN,
    GREY,
    HATCH,
    ORANGE,
    PURPLE,
    ROW,
    TEXT,
    Chart,
    Datum,
    Spec,
    amount,
    band,
    layer,
    palette,
    spec,
)
from accelopt_lsp.features.wording import duration, duration_interval, percent, quantity
from accelopt_lsp.state.version import Commit, Version, alike
from accelopt_profiling.duration import duration_text, unit_of
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.quantity import Known
from accelopt_profiling.targets import GpuTarget, UnknownTargetError, load_target
from accelopt_profiling.timeline import Timeline

_ENGINES = {"TensorE": BLUE, "VectorE": ORANGE, "ScalarE": GREEN, "GpSimdE": PURPLE}

#: So many lines are shown, the costliest.
LINES = 15

_WHY = {"operand": "which writes an operand", "room": "which still uses the room"}


def charts(
    result: KernelMeasurement,
    source: Sequence[str],
    versions: Sequence[Version] = (),
    commits: Sequence[Commit] = (),
) -> list[Chart]:
    """Return the charts about a kernel for which enough is known.

    ``source`` are the lines of its file, ``versions`` those that were profiled, the last one that of ``result``. Only
    those of its target and its sizes are shown. ``commits`` touched the file since, the oldest first.
    """
    shown = alike(versions, result)
    return [
        *_roofline(result, shown),
        *_costs(result, source),
        *(_engines(result.timeline, source) if result.timeline is not None else ()),
        *_history(shown, commits),
    ]


def small_roofline(result: KernelMeasurement, versions: Sequence[Version] = ()) -> Chart | None:
    """Return the chart against the roofline as small as a hover has room for; None where too little is known."""
    return next(_roofline(result, alike(versions, result), small=True), None)


def bandwidth(result: KernelMeasurement) -> float | None:
    """Return the bytes per second of the target's memory, of all cores of the launch; None: not known."""
    try:
        target = load_target(result.target)
    except UnknownTargetError:
        return None
    if isinstance(target, GpuTarget):
        return target["dram_bandwidth"]
    cores = result.quantities.get("cores")
    return float(target.data["peaks"]["hbm_gbps"]["value"]) * 1e9 * ((cores and cores.value) or 1)


def _roofline(result: KernelMeasurement, versions: Sequence[Version], small: bool = False) -> Iterator[Chart]:
    """Time over bytes, both to the better: for one kernel's work this is the roofline, without its unit of work."""
    rate, now = bandwidth(result), result.latency
    shown = [v for v in versions if v.moved is not None and v.moved.value and v.latency.us]
    if rate is None or now.us is None or result.percent_of_peak is None or not shown:
        return
    least = now.us * result.percent_of_peak / 100
    times = [t for v in shown for t in (v.latency.low_us, v.latency.us, v.latency.high_us) if t]
    sizes = [b for v in shown if v.moved for b in (v.moved.low, v.moved.value, v.moved.high) if b]
    per_us, unit = unit_of(now.us)
    size, prefix = next(
        ((s, p) for s, p in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if max(sizes) >= s), (1.0, "B")
    )
    ends = min(sizes) / 2 / size, max(sizes) * 2 / size
    by_bytes = [end * size / rate * 1e6 for end in ends]
    low, high = min(least, *by_bytes, *times) / 1.4 / per_us, max(*by_bytes, *times) * 1.4 / per_us
    axes = [f"moved to and from memory ({prefix}), less is right", f"time ({unit}), faster is up"]
    roofs = [
        f"memory at its peak, {rate / 1e12:.3g} TB/s",
        f"the least time of this work, {duration_text(least)}",
    ]
    if small:
        axes = [title.partition(",")[0] for title in axes]
        roofs = [f"{rate / 1e12:.3g} TB/s", f"at best {duration_text(least)}"]
    x = amount("moved", axes[0], ends, log=True, reverse=True)
    y = amount("time", axes[1], (low, high), log=True, reverse=True)
    at = {"x": x, "y": y}
    roof = [{"moved": end, "time": us / per_us} for end, us in zip(ends, by_bytes, strict=True)]
    floor = [{"moved": end, "time": least / per_us} for end in ends]
    marks, rows = [], []
    for number, version in enumerate(shown, 1):
        time, moved = version.latency, version.moved
        if time.us is None or moved is None or moved.value is None:
            continue
        name = _name(version, number, len(shown))
        about = f"{name}: {duration_interval(time)}, {quantity(moved)} ({moved.known})"
        ends_us = {"time": time.us, "low": time.low_us or time.us, "high": time.high_us or time.us}
        ends_bytes = {"moved": moved.value, "from": moved.low or moved.value, "to": moved.high or moved.value}
        at_us = {name: us / per_us for name, us in ends_us.items()}
        at_bytes = {name: count / size for name, count in ends_bytes.items()}
        which = "now" if number == len(shown) else "before"
        marks.append({**at_us, **at_bytes, "is": which, "about": about})
        rows.append((name, duration_interval(time), str(time.known), quantity(moved), str(moved.known)))
    colour = {"color": palette("is", {"now": ORANGE, "before": GREY})}
    words = [
        {"moved": ends[0], "time": by_bytes[0] / per_us, "text": roofs[0]},
        {"moved": ends[1], "time": least / per_us, "text": roofs[1]},
    ]
    layers = [
        layer("line", roof, at, stroke=TEXT),
        layer("line", floor, at, stroke=TEXT, strokeDash=[4, 3]),
        layer("text", words[:1], {**at, "text": _TEXT}, align="right", dx=-4, dy=-8, color=TEXT),
        layer("text", words[1:], {**at, "text": _TEXT}, align="left", dx=4, dy=-8, color=TEXT),
        layer(
            "rule",
            marks,
            {**at, "y": {**y, "field": "low"}, "y2": {"field": "high"}, **colour},
            strokeWidth=2,
        ),
        layer(
            "rule", marks, {**at, "x": {**x, "field": "from"}, "x2": {"field": "to"}, **colour}, strokeWidth=2
        ),
        layer("point", marks, {**at, **colour}, filled=True, size=70),
    ]
    about = (
        f"{percent(result.percent_of_peak)} % of what {result.target} can do at best. Nothing lies above a roof: the "
        "slanted one is memory at its peak, the dashed one the least time of this kernel's work. "
        f"Time {now.known}, its bar the interval; bytes as the table says."
    )
    yield Chart(
        "roofline", "Against the roofline", about, spec(layers, *((60, 300) if small else (240,))),
        ("version", "time", "known", "moved", "known"), rows,
    )  # fmt: skip


_TEXT: Spec = {"field": "text", "type": "nominal"}


def _costs(result: KernelMeasurement, source: Sequence[str]) -> Iterator[Chart]:
    """Yield the share of each of the costliest lines, in the order of the text."""
    costs = [cost for cost in result.lines if cost.share is not None]
    costliest = sorted(costs, key=lambda cost: -(cost.share or 0.0))[:LINES]
    shown = sorted(costliest, key=lambda cost: cost.line)
    if not shown:
        return
    bars: list[Datum] = []
    rows = []
    for cost in shown:
        text = _source(source, cost.line)
        share = 100 * (cost.share or 0.0)
        counts = ", ".join(
            f"{n.replace('_', ' ')} {quantity(q)} ({q.known})" for n, q in cost.quantities.items()
        )
        bars.append(
            {"row": f"{cost.line}  {text[:44]}", "start": 0, "share": share, "engine": cost.engine or "all",
             "line": cost.line, "about": f"line {cost.line}: {cost.text}"}
        )  # fmt: skip
        rows.append((str(cost.line), text, f"{percent(share)} %", cost.engine, cost.text, counts))
    engines = list(dict.fromkeys(str(bar["engine"]) for bar in bars))
    most = max(bar["share"] for bar in bars)
    encoding = {
        "y": band("row", [str(bar["row"]) for bar in bars]),
        "x": {**amount("start", "%", (0, most)), "field": "start"},
        "x2": {"field": "share"},
        "color": palette("engine", {engine: _colour(engine) for engine in engines}),
    }
    beside = result.dialect == "nki"
    about = (
        "How long each line keeps its engine busy, of the kernel's time; engines work beside each other, so lines may "
        "come to more than 100 %. Estimated by a model of the engines."
        if beside
        else "Each line's part of the memory traffic, in sectors: counted on the programs that were interpreted."
    )
    more = f" The {LINES} costliest of {len(costs)} lines." if len(costs) > LINES else ""
    yield Chart(
        "lines", "Cost by line", about + more, spec([layer("bar", bars, encoding, strokeWidth=2)], ROW * len(bars)),
        ("line", "source", "share", "engine", "cost", "counts"), rows, [cost.line for cost in shown],
    )  # fmt: skip


def _engines(timeline: Timeline, source: Sequence[str]) -> Iterator[Chart]:
    """Yield how busy each engine is over the whole run, and what each does in the middle of it."""
    if not timeline.lanes or timeline.us <= 0:
        return
    size, unit = unit_of(timeline.us)
    part = [timeline.us / size / max(1, len(busy)) for busy in timeline.busy]
    shares = [
        {
            "lane": lane,
            "from": n * width,
            "to": (n + 1) * width,
            "share": share,
            "about": f"{lane} {share:.0%} busy",
        }
        for lane, busy, width in zip(timeline.lanes, timeline.busy, part, strict=True)
        for n, share in enumerate(busy)
        if share > 0
    ]
    lanes = {
        "y": band("lane", timeline.lanes),
        "color": palette("lane", {n: _colour(n) for n in timeline.lanes}),
    }
    whole = {**amount("from", unit, (0, timeline.us / size)), "field": "from"}
    opacity = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": [0, 1], "range": [0, 1]},
        "legend": None,
    }
    means = [sum(busy) / max(1, len(busy)) for busy in timeline.busy]
    yield Chart(
        "busy", "How busy each engine is", "Over the run; the darker, the busier. Estimated by a model of the engines.",
        spec([layer("rect", shares, {**lanes, "x": whole, "x2": {"field": "to"}, "opacity": opacity})],
             ROW * len(timeline.lanes)),
        ("engine", "busy"), [(lane, f"{mean:.0%}") for lane, mean in zip(timeline.lanes, means, strict=True)],
    )  # fmt: skip
    yield from _work(timeline, lanes, source)


def _work(timeline: Timeline, lanes: Spec, source: Sequence[str]) -> Iterator[Chart]:
    spans = timeline.middle().spans
    ends = [start + us for start, us in zip(spans.start_us, spans.us, strict=True)]
    first, last = min(spans.start_us, default=0.0), max(ends, default=0.0)
    size, unit = unit_of(last)
    free = dict.fromkeys(range(len(timeline.lanes)), first)
    work: list[Datum] = []
    waits: list[Datum] = []
    rows = []
    for n, number in enumerate(spans.lane):
        start, end = spans.start_us[n], ends[n]
        lane, line, cause = timeline.lanes[number], spans.line[n], spans.cause[n]
        at = {"lane": lane, "line": line}
        name = f"{timeline.names[spans.name[n]]}, {duration_text(spans.us[n])}"
        about = f"{name}, line {line}{': ' if line else ''}{_source(source, line)}"
        waited = ""
        if cause >= 0 and spans.why[n] in _WHY and start > free[number]:
            blocker = f"{timeline.names[spans.name[cause]]} on line {spans.line[cause]}"
            waited = (
                f"{duration_text(start - free[number])} for {blocker} ({timeline.lanes[spans.lane[cause]]})"
            )
            why = f"{lane} waits {waited}, {_WHY[spans.why[n]]}"
            waits.append({**at, "from": free[number] / size, "to": start / size, "about": why})
        work.append({**at, "from": round(start / size, 5), "to": round(end / size, 5), "about": about})
        rows.append((lane, duration_text(start), name, str(line), _source(source, line), waited))
        free[number] = end
    if not work:
        return
    x = {"x": {**amount("from", unit, (first / size, last / size)), "field": "from"}, "x2": {"field": "to"}}
    layers = [
        layer("rect", work, {**lanes, **x}, strokeWidth=1),
        layer("rect", waits, {"y": lanes["y"], **x}, color=HATCH),
    ]
    about = (
        f"The middle of the run, {duration_text(first)} to {duration_text(last)}; hatched: the engine waits for "
        "another. Estimated by a model of the engines."
    )
    yield Chart(
        "engines", "What each engine does in the middle", about, spec(layers, ROW * len(timeline.lanes)),
        ("engine", "at", "does", "line", "source", "waited"), rows, [int(row[3]) for row in rows],
    )  # fmt: skip


def _history(versions: Sequence[Version], commits: Sequence[Commit]) -> Iterator[Chart]:
    """Yield the times of the versions that were profiled, where there are several."""
    timed = [version for version in versions if version.latency.us is not None]
    if len(timed) < 2:
        return
    size, unit = unit_of(timed[-1].latency.us or 1.0)
    points: list[Datum] = []
    rows = []
    committed = _committed(timed, commits)
    for number, version in enumerate(timed, 1):
        time, name = version.latency, _name(version, number, len(timed))
        if number in committed:
            name += f", committed as {committed[number].id}: {committed[number].subject}"
        us = time.us or 0.0
        at_us = {"time": us / size, "low": (time.low_us or us) / size, "high": (time.high_us or us) / size}
        which, about = "accepted" if version.accepted else "saved", f"{name}: {duration_interval(time)}"
        points.append({**at_us, "version": str(number), "is": which, "about": about})
        rows.append((name, duration(time), str(time.known), version.bound, version.case))
    y = amount("time", f"time ({unit})", (0, max(point["high"] for point in points)))
    at = {"x": band("version", [str(point["version"]) for point in points]), "y": y}
    colour = {"color": palette("is", {"saved": BLUE, "accepted": GREEN})}
    marked = [{**points[n - 1], "text": commit.id} for n, commit in committed.items()]
    layers = [
        layer(
            "rule",
            points,
            {**at, "y": {**y, "field": "low"}, "y2": {"field": "high"}, **colour},
            strokeWidth=2,
        ),
        layer("point", points, {**at, **colour}, filled=True, size=70),
        layer("text", marked, {**at, "text": _TEXT}, align="left", dx=8, dy=0, color=TEXT),
    ]
    estimated = any(version.latency.known is Known.ESTIMATED for version in timed)
    about = (
        f"The versions that were profiled since the file was opened, the last one on the right; green: accepted"
        f"{', with a name: that of the commit which holds it' if marked else ''}."
        f"{' A bar is the interval of an estimate.' if estimated else ''}"
    )
    yield Chart(
        "history",
        "Over the saves",
        about,
        spec(layers, 180),
        ("version", "time", "known", "bound", "case"),
        rows,
    )


def _committed(versions: Sequence[Version], commits: Sequence[Commit]) -> dict[int, Commit]:
    """Return the last commit of each version that was committed, by its number: a commit holds the version that was
    profiled last before it."""
    numbers = ((sum(int(version.at) <= commit.at for version in versions), commit) for commit in commits)
    return {number: commit for number, commit in numbers if number}


def _name(version: Version, number: int, last: int) -> str:
    what = "accepted version" if version.accepted else "save"
    return f"{what} {number}{', shown' if number == last else ''}"


def _colour(engine: str) -> str:
    """Return an engine's colour; lanes of another core of a launch end in its number."""
    return BLUE if engine == "all" else _ENGINES.get(engine.split()[0], GREY)


def _source(source: Sequence[str], line: int) -> str:
    return source[line - 1].strip() if 0 < line <= len(source) else ""
