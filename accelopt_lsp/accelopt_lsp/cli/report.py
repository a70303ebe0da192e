"""Implements ``accelopt report``: writes measurements as one self-contained HTML file.

All text from files, kernels and hosts is escaped; nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import click

from accelopt_agent.search.history import PastRun
from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import host_option, json_option, target_option
from accelopt_lsp.cli.profile import answer, profiled
from accelopt_lsp.cli.tables import result_words
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.errors import UserError
from accelopt_lsp.features import chart_svg
from accelopt_lsp.features.chart import BLUE, RED, Chart, amount, layer, palette, spec
from accelopt_lsp.features.pictures import charts
from accelopt_lsp.features.search_tree import search_tree
from accelopt_lsp.features.wording import duration, headline, number, percent, quantity, stop_reason, times
from accelopt_lsp.resources import open_memory, read_file, settings_for, with_target
from accelopt_lsp.service.protocol import FileRequest
from accelopt_memory.outcomes import WINDOW, ItemSummary, KernelTries
from accelopt_memory.records import Pair
from accelopt_profiling import __version__
from accelopt_profiling.measurement import FileMeasurement, Finding, KernelMeasurement
from accelopt_profiling.source_text import source_lines


@click.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "-o", "--output", default="accelopt-report.html", show_default=True, type=click.Path(path_type=Path)
)
@target_option
@host_option
@json_option
def report(files: tuple[Path, ...], output: Path, target: str | None, host: str | None, as_json: bool) -> int:
    """Profile FILES and write one HTML report.

    Exit code 1: a kernel's result is wrong, or a file has no kernel. 2: one could not be run.
    """
    sources = [
        read_file(file, settings_for(file, {"host": host}), target, among_others=True) for file in files
    ]
    with_target(
        sources[0].settings, target, {k.dialect for source in sources for k in source.source.launched}
    )
    measurements = profiled(sources, timeline=True)
    shown = [source.without_ignored(m) for source, m in zip(sources, measurements, strict=True)]
    searched = [run for source in sources for run in _searches(source)]
    try:
        output.write_text(page(shown, [source.text for source in sources], searched), encoding="utf-8")
    except OSError as error:
        raise wrong_input(f"{output} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json(
            {"path": str(output), "files": len(files), "kernels": sum(len(m.kernels) for m in measurements)}
        )
    else:
        click.echo(f"Wrote {output}.")
    return max((answer(measurement) for measurement in measurements), default=Exit.NO)


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top; }
th { border-bottom: 1px solid #999; font-weight: 600; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.failed, .error { color: #b00020; } .warning { color: #8a5a00; } .known { color: #666; }
pre { line-height: 1.35; overflow-x: auto; }
pre span { display: block; } pre .share { display: inline-block; width: 5em; color: #666; }
@media (prefers-color-scheme: dark) { body { background: #1e1e1e; color: #ddd; } .known, pre .share { color: #999; } }
"""


def _searches(file: FileRequest) -> list[PastRun]:
    """Return the last search of each kernel of a file; none where there is no memory."""
    from accelopt_agent.search.history import last_runs

    try:
        with open_memory(file.settings, read_only=True) as memory:
            return last_runs(memory, str(Path(file.path).resolve()))
    except UserError:
        return []


def page(
    measurements: Sequence[FileMeasurement], texts: Sequence[str], searched: Sequence[PastRun] = ()
) -> str:
    """Return one HTML document for the measurements of several files with these texts, and their last searches."""
    body = "\n".join(
        part
        for m, text in zip(measurements, texts, strict=True)
        for part in _file(m, source_lines(text), searched)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>AccelOpt report</title>'
        f"<style>{STYLE}{chart_svg.STYLE}</style></head>\n<body><h1>Kernels</h1>\n{_overview(measurements)}\n{body}\n"
        f'<p class="known">AccelOpt {escape(__version__)}. Each number says how it is known: measured on a device, '
        "executed (counted while interpreting), compiled (told by the compiler), or estimated (a model, with an "
        "interval).</p></body></html>\n"
    )


def _overview(measurements: Sequence[FileMeasurement]) -> str:
    rows = [
        row(
            f"{measurement.file}: {kernel.name}",
            kernel.target,
            duration(kernel.latency),
            "" if kernel.percent_of_peak is None else f"{percent(kernel.percent_of_peak)} %",
            kernel.bound or "",
            stop_reason(kernel, measurement.findings) or result_words(kernel),
        )
        for measurement in measurements
        for kernel in measurement.kernels
    ]
    return table(["kernel", "target", "time", "of peak", "bound by", "result"], rows)


def _file(measurement: FileMeasurement, lines: list[str], searched: Sequence[PastRun]) -> Iterator[str]:
    if measurement.findings or not measurement.kernels:
        yield f"<h2>{escape(measurement.file)}</h2>"
        yield _findings(measurement.findings) or "<p>There is no Triton or NKI kernel.</p>"
    for kernel in measurement.kernels:
        yield f"<h2>{escape(kernel.name)} <small>{escape(measurement.file)}:{kernel.line}</small></h2>"
        yield f"<p>{escape(headline(kernel))}</p>"
        status, detail = kernel.correctness.status, kernel.correctness.detail
        yield f'<p class="{escape(status)}">Result: {escape(status)}{": " if detail else ""}{escape(detail)}</p>'
        yield _findings(kernel.findings)
        yield from map(_picture, charts(kernel, lines))
        for run in searched:
            tree = search_tree(run, {}, kernel.content_hash) if _is_of(run, measurement, kernel) else None
            if tree is not None:
                yield _picture(tree)
        yield _source(kernel, lines)
        rows = [
            f'<tr><td>{escape(name.replace("_", " "))}</td><td class="number">{escape(quantity(value))}</td>'
            f'<td class="known">{escape(str(value.known))}</td></tr>'
            for name, value in kernel.quantities.items()
        ]
        yield table(["quantity", "", "known"], rows)


def _is_of(run: PastRun, measurement: FileMeasurement, kernel: KernelMeasurement) -> bool:
    return (run.run.kernel, run.run.file) == (kernel.name, str(Path(measurement.file).resolve()))


def _picture(chart: Chart) -> str:
    """Return a chart with its sentence, without its table: the page has the numbers elsewhere."""
    about = escape(chart.about)
    return f'<h3>{escape(chart.title)}</h3>{chart_svg.chart_svg(chart)}<p class="known">{about}</p>'


def _source(kernel: KernelMeasurement, lines: list[str]) -> str:
    """Return the kernel's lines from its ``def`` to the last one that costs something, each with its share
    and cost."""
    if not kernel.lines:
        return ""
    costs = {cost.line: cost for cost in kernel.lines}
    last = min(max(costs), len(lines))
    rows = []
    for n in range(kernel.line, last + 1):
        cost = costs.get(n)
        share = f"{number(round(100 * cost.share))} %" if cost and cost.share is not None else ""
        note = f"  <i>{escape(cost.text)}</i>" if cost else ""
        rows.append(f'<span><b class="share">{share}</b>{n:4} {escape(lines[n - 1])}{note}</span>')
    return "<pre>" + "".join(rows) + "</pre>"


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    items = [
        f'<li class="{escape(f.severity)}">line {f.line}: {escape(f.message)} <code>{escape(f.code)}</code></li>'
        for f in findings
    ]
    return "<ul>" + "".join(items) + "</ul>"


def row(*cells: str) -> str:
    """Return a row of a table, its cells escaped."""
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def table(head: Sequence[str], rows: Sequence[str]) -> str:
    """Return a table of ``rows`` (``row``), "" without any."""
    if not rows:
        return ""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


#: So many kernels are in the picture, the last ones.
KERNELS = 200


def memory_page(pairs: Sequence[Pair], items: Sequence[ItemSummary], curve: Sequence[KernelTries]) -> str:
    """Return one HTML document: the pairs by operator and target, what each item did, the learning curve."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.kernel, pair.target), []).append(pair)
    changes = "\n".join(_group(kernel, target, group) for (kernel, target), group in sorted(groups.items()))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>What AccelOpt learned</title>'
        f"<style>{STYLE}{chart_svg.STYLE}</style></head>\n"
        f"<body><h1>What was learned</h1>\n{_curve(curve)}\n<h2>By operator and target</h2>\n"
        f"{changes or '<p>No pair is remembered.</p>'}\n<h2>By rule and change</h2>\n{_items(items)}\n"
        f'<p class="known">AccelOpt {escape(__version__)}. A gain says how it is known; the expected time is '
        "computed from the outcomes of all tries. Pairs that nobody accepted are marked as checked.</p></body></html>\n"
    )


def _group(kernel: str, target: str, pairs: Sequence[Pair]) -> str:
    ranked = sorted(pairs, key=lambda p: (-(p.speedup or 0.0), p.id))
    rows = [
        row(
            pair.id,
            pair.summary,
            "not known" if pair.speedup is None else f"{times(pair.speedup)} {pair.fast.known}",
            duration(pair.slow),
            duration(pair.fast),
            "checked" if pair.checked else "imported" if pair.imported else "accepted",
            pair.created[:10],
        )
        for pair in ranked
    ]
    head = ["pair", "change", "gain", "before", "after", "state", "saved"]
    return f"<h3>{escape(kernel)} on {escape(target)}</h3>\n{table(head, rows)}"


def _items(items: Sequence[ItemSummary]) -> str:
    rows = [
        row(
            i.item, i.dialect, str(i.tasks), str(i.tries), str(i.failed), str(i.accepted), str(i.undone),
            f"{i.expected:.2f}x",
        )
        for i in items
    ]  # fmt: skip
    head = ["item", "dialect", "kernels", "tries", "failed", "accepted", "undone", "expected time"]
    return table(head, rows) or "<p>Nothing was tried yet.</p>"


def _curve(curve: Sequence[KernelTries]) -> str:
    """Return the picture of the tries that each kernel needed, and their running mean."""
    recent = curve[-KERNELS:]
    if len(recent) < 2:
        return "<p>A learning curve needs two kernels that were searched.</p>"
    places = [
        {"kernel": number, "tries": one.first_gain or one.tries, "mean": one.mean, "about": _words(one),
         "is": "one" if one.first_gain else "none"}
        for number, one in enumerate(recent, 1)
    ]  # fmt: skip
    most = max(one.first_gain or one.tries for one in recent)
    x = amount("kernel", "kernels, in the order of their first search", (1, len(recent)))
    y = amount("tries", "tries until one helped", (0, most))
    colour = palette("is", {"one": BLUE, "none": RED})
    layers = [
        layer("line", places, {"x": x, "y": {**y, "field": "mean"}}, stroke=BLUE),
        layer("point", places, {"x": x, "y": y, "color": colour}, filled=True, size=30),
    ]
    about = (
        "A dot is a kernel: which of its tries was the first to make a version faster by 1 % or more; red where none "
        f"did, at all of its tries. The line is the mean over a kernel and the {WINDOW} before it."
    )
    rows = [(str(place["kernel"]), str(place["about"])) for place in places]
    return _picture(Chart("curve", "Learning curve", about, spec(layers, 200), ("kernel", "tries"), rows))


def _words(one: KernelTries) -> str:
    helped = f"try {one.first_gain} helped" if one.first_gain else "none helped"
    return f"{one.began[:10]}, {one.target}: {one.tries} tries, {helped}"
