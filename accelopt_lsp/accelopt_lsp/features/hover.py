"""What is known about a kernel, as Markdown or as plain text: five rows, then every number."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from accelopt_lsp.features.hints import busiest_engine, share_text
from accelopt_lsp.features.target_table import by_time, time_on
from accelopt_lsp.features.wording import (
    WRONG,
    change,
    duration,
    escaped,
    origin,
    percent,
    profiled_at,
    quantity,
    speedup,
    stop_finding,
    stop_reason,
    syntax_fault,
    where,
)
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_profiling.duration import duration_text
from accelopt_profiling.measurement import Finding, KernelMeasurement, finding_codes
from accelopt_profiling.quantity import Known, Quantity

#: From this share of the target's peak on (0..100), a rewrite has little left to gain.
NEAR_PEAK = 90
#: So many characters of a cause or an advice fill a line of VS Code's hover, of which 12 are in sight.
BRIEF = 60

Row = tuple[str, str]


def hover(state: Document, line: int, markdown: bool, picture: bool = False) -> str | None:
    """Return what is known about the kernel around the 1-based ``line``, on its head (decorators to ``def``),
    and about a single line where that line has a cost; None elsewhere. With ``picture`` a kernel's roofline too."""
    kernel = state.kernel_at(line)
    if kernel is None or kernel.shown is None:
        return None
    if line <= kernel.kernel.line:
        image = _image(kernel, kernel.shown) if picture and markdown and not kernel.old else None
        return _kernel(state, kernel, kernel.shown, markdown, image)
    return None if kernel.old else _line(kernel.shown, line, markdown)


def _image(kernel: KernelState, result: KernelMeasurement) -> str | None:
    """Return the kernel against the roofline, as an image in Markdown; None where too little is known."""
    from accelopt_lsp.features.chart_svg import chart_image  # no editor that shows none pays for it
    from accelopt_lsp.features.pictures import small_roofline

    chart = small_roofline(result, kernel.versions)
    return f"![{_shown(chart.about.partition('. ')[0])}]({chart_image(chart)})" if chart is not None else None


def _kernel(
    state: Document, kernel: KernelState, result: KernelMeasurement, markdown: bool, image: str | None
) -> str:
    """Return the five rows about a kernel, a rule, ``image``, and the details, with the rows that were too long."""
    escape = _shown if markdown else _one_line
    strong = "**" if markdown else ""
    case = f" at {escape(profiled_at(result))}" if result.case else ""
    rows = list(_summary(state, kernel, result))
    brief = [(name, textwrap.shorten(text, BRIEF, placeholder=" ...")) for name, text in rows]
    in_sight = [short if short[0] in ("why", "next") else row for row, short in zip(rows, brief, strict=True)]
    parts = [
        _rows(in_sight, markdown),
        "---",
        *([image] if image else []),
        f"{strong}{escape(kernel.kernel.name)}{strong}{case}",
    ]
    if cut := [row for row in rows if row not in in_sight]:
        parts.append(_rows(cut, markdown))
    parts.append(_table(_quantities(result), markdown))
    if result.latency.us is not None and not kernel.old:
        parts.append(_on_targets(kernel, markdown))
    if kernel.offers:
        lines = (
            f"- {speedup(s.speedup)}: {escape(s.summary)} ({escape(origin(s))})" for s in kernel.offers[:5]
        )
        parts.append("\n".join(lines))
    about = [f"target {result.target}", f"host {result.host}"]
    about += [f"{name} {version}" for name, version in result.toolchain.items()]
    if result.receipt:
        about.append(f"receipt {result.receipt}")
    parts.append(escape(", ".join(about)))
    return "\n\n".join(parts)


def _on_targets(kernel: KernelState, markdown: bool) -> str:
    """Return what the kernel costs on the targets that somebody asked for, or how to ask."""
    results = by_time(kernel.on_targets)
    if not results:
        return 'On other targets: not computed for this text ("Show the Cost on Other Targets" does).'
    rows = [(r.target, ", ".join(filter(None, (time_on(r), r.bound))), str(r.latency.known)) for r in results]
    return _table(rows, markdown)


def _summary(state: Document, kernel: KernelState, result: KernelMeasurement) -> Iterator[Row]:
    """Yield the five rows: time, bound, why, result, next."""
    run_findings = (*state.run_findings, *state.findings)
    reason = stop_reason(result, run_findings)
    time = f"{f'{reason}, ' if reason else ''}{duration(result.latency)} on {where(result)}"
    if result.latency.known is Known.ESTIMATED and result.latency.us is not None:
        time += f", modelled at {duration_text(result.latency.us)}"
    if kernel.old:
        time = f"before this edit: {time}"
    elif changed := change(kernel.before, result):
        time += f", {changed}"
    yield "time", time
    yield "bound", _bound(result)
    yield "why", _why(result, run_findings)
    yield "result", _correctness(result, run_findings)
    yield "next", _next(state, kernel, result, run_findings)


def _bound(result: KernelMeasurement) -> str:
    peak = result.quantities.get("percent_of_peak")
    share = ""
    if result.percent_of_peak is not None:
        ends = "" if peak is None or peak.low == peak.high else f" ({quantity(peak)})"
        share = f"{percent(result.percent_of_peak)} % of peak{ends}"
    return ", ".join(part for part in (result.bound or "", share) if part) or "not known"


def _why(result: KernelMeasurement, run_findings: tuple[Finding, ...]) -> str:
    """Return what stopped it, what waits, the gravest finding about cost, or the costliest line."""
    if stopped := result.fault or stop_finding(result, run_findings):
        return f"line {stopped.line}: {stopped.message}"
    parts = [result.waiting] if result.waiting else []
    costs = [f for f in result.findings if finding_codes().get(f.code, {}).get("about") == "cost"]
    if costs and not parts:
        worst = min(costs, key=lambda f: ("error", "warning", "information", "hint").index(f.severity))
        parts.append(f"line {worst.line}: {worst.message.partition('. ')[0].removesuffix('.')}")
    shares = [cost for cost in result.lines if cost.share is not None and cost.text]
    if shares and not parts:
        costliest = max(shares, key=lambda cost: cost.share or 0.0)
        parts.append(f"line {costliest.line} takes the most: {costliest.text}")
    return "; ".join(parts) or "not known"


def _next(
    state: Document, kernel: KernelState, result: KernelMeasurement, run_findings: tuple[Finding, ...]
) -> str:
    """Return the one thing to do now."""
    codes = {f.code for f in (*run_findings, *result.findings)}
    if fault := syntax_fault(state):
        return f"mend what {fault}"
    if kernel.old:
        return "save, to profile this text"
    if result.fault is not None:
        return f"mend line {result.fault.line}"
    if kernel.offers:
        best, more = kernel.offers[0], len(kernel.offers) - 1
        others = f", and {more} more" if more else ""
        return (
            f"look at the checked version, {speedup(best.speedup)}: {best.summary.removesuffix('.')}{others}"
        )
    if "no-problem" in codes:
        return "write a problem file: it says what to run the kernel with"
    if "inferred-size" in codes:
        return "give the sizes that you work with: these say little"
    if result.latency.us is None and "inferred-problem" in codes:
        return "write the problem file, with the arguments that the kernel is called with"
    if result.latency.us is None:
        return "read the findings of this file: they say why it has no time"
    if kernel.resumable is not None:
        return f"resume the search ({kernel.resumable.tried} tried)"
    if (result.percent_of_peak or 0) >= NEAR_PEAK:
        return "little is left: it runs near the peak of the target"
    return "Optimize looks for faster versions"


def _quantities(result: KernelMeasurement) -> list[tuple[str, str, str]]:
    """Return every number of a kernel: what, how much, how it is known."""
    time = result.latency
    whole = Quantity(time.us, time.known, unit="us", low=time.low_us, high=time.high_us)
    rows = [("time", quantity(whole), str(time.known))]
    quantities = dict(result.quantities)
    peak = quantities.pop("percent_of_peak", None)
    if peak is not None:
        rows.append(("of peak", quantity(peak), str(peak.known)))
    elif result.percent_of_peak is not None:
        rows.append(("of peak", f"{percent(result.percent_of_peak)} %", str(time.known)))
    return [*rows, *((name.replace("_", " "), quantity(q), str(q.known)) for name, q in quantities.items())]


def _line(result: KernelMeasurement, line: int, markdown: bool) -> str | None:
    cost = next((c for c in result.lines if c.line == line), None)
    if cost is None:
        return None
    escape = _shown if markdown else str
    parts = [escape(cost.text)] if cost.text else []
    if share := share_text(result, cost, busiest_engine(result)):
        parts.append(escape(share))
    rows = [(name.replace("_", " "), quantity(q), str(q.known)) for name, q in cost.quantities.items()]
    if rows:
        parts.append(_table(rows, markdown))
    return "\n\n".join(parts) or None


def _correctness(result: KernelMeasurement, run_findings: tuple[Finding, ...]) -> str:
    checked = result.correctness
    if checked.status != "passed" and (stopped := stop_reason(result)) and stopped != WRONG:
        return f"could not be checked: {stopped}"
    if checked.status == "not checked":
        inferred = any(f.code == "inferred-problem" for f in run_findings)
        without = "inferred arguments, no reference" if inferred else checked.detail
        return f"not checked{f': {without}' if without else ''}"
    verdict = "agrees with" if checked.status == "passed" else "DISAGREES with"
    parts = [f"{verdict} the reference"]
    if checked.extent:
        sample = ", those that a sample of the programs writes" if checked.compared < checked.of else ""
        parts[0] += f": {checked.extent}{sample}"
    if checked.status == checked.device == "passed":
        parts.append("so do the results of the device")
    detail = checked.detail.partition(f", {checked.extent} compared")[0] if checked.extent else checked.detail
    return "; ".join(part.removesuffix(".") for part in (*parts, detail) if part)


def _rows(rows: Iterable[Row], markdown: bool) -> str:
    """Return one row per line, what it is about first."""
    if markdown:
        return "\n".join(f"- **{name}** {_shown(text)}" for name, text in rows)
    return "\n".join(f"{name}: {_one_line(text)}" for name, text in rows)


def _table(rows: list[tuple[str, str, str]], markdown: bool) -> str:
    if markdown:
        body = [f"| {_shown(name)} | {_shown(value)} | {certainty} |" for name, value, certainty in rows]
        return "\n".join(["| what | value | how known |", "|---|---|---|", *body])
    return "\n".join(f"{name}: {value} ({certainty})" for name, value, certainty in rows)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shown(text: str) -> str:
    """Return a text as Markdown that shows it as it is, on one line."""
    return escaped(_one_line(text))
