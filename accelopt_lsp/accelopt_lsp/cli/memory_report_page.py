"""Builds the HTML page about what the memory learned. All text from outside is escaped; nothing is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from accelopt_lsp.cli.report import STYLE, row, table
from accelopt_lsp.features.wording import duration, times
from accelopt_memory.outcomes import WINDOW, ItemSummary, KernelTries
from accelopt_memory.records import Pair
from accelopt_profiling import __version__

#: The size of the picture, the room around it, and the kernels that it shows, the last ones.
WIDTH, HEIGHT, MARGIN, KERNELS = 720, 220, 30, 200


def page(pairs: Sequence[Pair], items: Sequence[ItemSummary], curve: Sequence[KernelTries]) -> str:
    """Return one HTML document: the pairs by operator and target, what each item did, the learning curve."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.kernel, pair.target), []).append(pair)
    changes = "\n".join(_group(kernel, target, group) for (kernel, target), group in sorted(groups.items()))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>What AccelOpt learned</title>'
        f"<style>{STYLE} polyline {{ fill: none; stroke: #06c; stroke-width: 2; }} circle {{ fill: #06c; }}"
        " circle.none { fill: #b00020; } text { font-size: 11px; fill: currentColor; }</style></head>\n"
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
    most = max(one.first_gain or one.tries for one in recent)
    step = (WIDTH - 2 * MARGIN) / (len(recent) - 1)

    def height(tries: float) -> float:
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * tries / most

    places = [round(MARGIN + step * k, 1) for k in range(len(recent))]
    line = " ".join(f"{x},{height(one.mean):.1f}" for x, one in zip(places, recent, strict=True))
    dots = "".join(
        f'<circle cx="{x}" cy="{height(one.first_gain or one.tries):.1f}" r="3"{"" if one.first_gain else _NONE}>'
        f"<title>{escape(_words(one))}</title></circle>"
        for x, one in zip(places, recent, strict=True)
    )
    return (
        f'<h2>Learning curve</h2>\n<svg width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="tries until one helped, by kernel"><polyline points="{line}"/>{dots}'
        f'<text x="2" y="{MARGIN - 12}">tries until one helped, at most {most}</text>'
        f'<text x="{MARGIN}" y="{HEIGHT - 8}">{len(recent)} kernels, in the order of their first search</text></svg>\n'
        f"<p>A dot is a kernel: which of its tries was the first to make a version faster by 1 % or more; red where "
        f"none did, at all of its tries. The line is the mean over a kernel and the {WINDOW} before it.</p>"
    )


_NONE = ' class="none"'


def _words(one: KernelTries) -> str:
    helped = f"try {one.first_gain} helped" if one.first_gain else "none helped"
    return f"{one.began[:10]}, {one.target}: {one.tries} tries, {helped}"
