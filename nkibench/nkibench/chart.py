"""Writes one self-contained HTML page: percent of peak per task as a chart and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from nkibench.metrics import milliseconds, of_peak
from nkibench.result import BenchmarkSummary, TaskResult, percent, summarise

_LEFT, _WIDTH, _ROW, _TOP = 190, 560, 30, 34

_STYLE = """
:root { --text: #222; --soft: #666; --line: #ccc; --before: #9ab8d8; --best: #1f6fb4; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ddd; --soft: #999; --line: #444; --before: #4a6a8c; --best: #6db3ee; --page: #1e1e1e; }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--page); }
table { border-collapse: collapse; } th, td { text-align: right; padding: .1rem .8rem .1rem 0; }
th { border-bottom: 1px solid var(--line); } th:first-child, td:first-child, td.text, th.text { text-align: left; }
svg { max-width: 100%; height: auto; margin-bottom: 1rem; } svg text { fill: var(--text); font-size: 13px; }
svg .soft { fill: var(--soft); font-size: 12px; } .known { color: var(--soft); }
.before { fill: var(--before); } .best { fill: var(--best); }
.grid { stroke: var(--line); } .published { stroke: var(--text); stroke-width: 2; }
"""


def page(results: Sequence[TaskResult], target: str) -> str:
    """Return the page for results of one target."""
    summary = summarise(results)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>NKIBench</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>NKIBench on {escape(target)}</h1>\n"
        f"<p>{escape(headline(summary))}</p>\n{chart(results)}\n{_table(results)}\n"
        '<p class="known">Peak is the least time by NKIBench\'s published formulas. Times are '
        f"{escape(summary.known or 'not known')}; an estimate is a model's, not a device's. The dark tick is what "
        "AccelOpt measured for its own baseline, which is another kernel.</p></body></html>\n"
    )


def headline(summary: BenchmarkSummary) -> str:
    """Return the geometric means in one sentence."""
    if summary.baseline is None or summary.best is None:
        return "No task has both a verdict and a time."
    text = (
        f"Geometric mean of percent of peak over {summary.counted} of {summary.of} tasks ({summary.known}): "
    )
    if summary.best > summary.baseline:
        gain = summary.best - summary.baseline
        return f"{text}{summary.baseline:.1f} before, {summary.best:.1f} after (+{gain:.1f} points)."
    return f"{text}{summary.baseline:.1f}."


def chart(results: Sequence[TaskResult]) -> str:
    """Return the chart as an SVG element: a bar per task for the baseline, one for the best version, peak at
    the right."""
    bars = [r for r in results if r.percent is not None]
    height = _TOP + _ROW * len(bars) + 24
    title = "Percent of peak per task: baseline and best version"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 130} {height}" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
    ]
    for share in range(0, 101, 20):
        x = _LEFT + _WIDTH * share / 100
        label = "peak" if share == 100 else f"{share} %"
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{height - 20}"/>'
            f'<text class="soft" x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle">{label}</text>'
        )
    for row, result in enumerate(bars):
        parts += _bars(result, _TOP + _ROW * row)
    parts.append(
        f'<rect class="before" x="{_LEFT}" y="{height - 13}" width="10" height="10"/>'
        f'<text class="soft" x="{_LEFT + 15}" y="{height - 4}">baseline</text>'
        f'<rect class="best" x="{_LEFT + 90}" y="{height - 13}" width="10" height="10"/>'
        f'<text class="soft" x="{_LEFT + 105}" y="{height - 4}">best version</text>'
        f'<line class="published" x1="{_LEFT + 205}" x2="{_LEFT + 205}" y1="{height - 14}" y2="{height - 2}"/>'
        f'<text class="soft" x="{_LEFT + 212}" y="{height - 4}">AccelOpt\'s baseline, measured</text></svg>'
    )
    return "\n".join(parts)


def _bars(result: TaskResult, top: float) -> Iterator[str]:
    before, best = result.percent or 0.0, result.best_percent or 0.0
    yield (
        f'<text x="{_LEFT - 8}" y="{top + 15}" text-anchor="end">{escape(result.task)}</text>'
        f'<rect class="before" x="{_LEFT}" y="{top + 2}" width="{_length(before):.1f}" height="9"/>'
        f'<rect class="best" x="{_LEFT}" y="{top + 12}" width="{_length(best):.1f}" height="9"/>'
    )
    label = f"{before:.0f} %" if result.best is None else f"{before:.0f} to {best:.0f} %"
    end = _LEFT + _length(max(before, best))
    yield f'<text class="soft" x="{end + 8:.1f}" y="{top + 16}">{label}</text>'
    theirs = percent(result.peak_us, result.published_ms * 1000 if result.published_ms else None)
    if theirs is not None:
        x = _LEFT + _length(theirs)
        yield f'<line class="published" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + 22}"/>'


def _length(share: float) -> float:
    """Pixels of a share of peak. Above peak the bar ends just beyond the last line."""
    return _WIDTH * min(max(share, 0.0), 104.0) / 100


def _table(results: Sequence[TaskResult]) -> str:
    heads = ("task", "result", "error", "baseline ms", "of peak", "best ms", "of peak", "steps", "bound")
    rows = []
    for r in results:
        best = r.best
        cells = [
            r.task,
            r.status if r.status == "passed" else f"{r.status}: {r.detail}",
            "" if r.error is None else f"{r.error:.1e}",
            milliseconds(r.latency.us),
            of_peak(r.percent),
            milliseconds(best.latency.us) if best else "",
            of_peak(r.best_percent) if best else "",
            str(len(best.steps)) if best else "",
            r.bound or "",
        ]
        rows.append("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>")
    head = "".join(f"<th>{h}</th>" for h in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(rows) + "\n</tbody></table>"
