"""Selects what each role sees of the search.

A version's cost in a few lines, each number with how it is known, and the results and changes of related versions.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from accelopt_agent.model.prompt_templates import fenced
from accelopt_agent.model.settings import Share
from accelopt_agent.search.node import Node
from accelopt_agent.syntax.lines import split_lines
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.quantity import Known, Quantity

#: How many versions, and how many lines of a change, are shown.
VERSIONS_SHOWN, LINES_SHOWN = 12, 14
#: How many lines of the net change of a fast version, and of the change that a debugger looks at.
NET_LINES, DEBUG_LINES = 70, 160
#: How many of the fastest versions are shown as code.
FASTEST_SHOWN = 2

#: How alike (0..1) two plans are that mean a similar change.
ALIKE = 0.4


def planner_window(node: Node, unusable: Sequence[str] = (), share: Share = "file") -> str:
    """List what was tried on ``node``, in Markdown.

    The plans and answers that could not be used follow, and the fastest versions of the whole search, the two fastest
    with their net change.
    """
    children = [_line(child, node) for child in _newest(node.children)]
    versions = list(node.root.walk())
    ranked = sorted((n for n in versions if n.parent is not None and n.sound), key=lambda n: n.us)
    best = [_line(n, node.root) for n in ranked[:VERSIONS_SHOWN] if n is not node and n not in node.children]
    failed = [n for n in versions if n.failure is not None and n.parent is not node]
    parts = [
        _list("Tried on this version", children),
        _list(
            "Plans and answers that could not be used", [f"- {line}" for line in unusable[-VERSIONS_SHOWN:]]
        ),
        _list("Failed on other versions", [_line(n, n.parent) for n in _newest(failed)]),
        _list("Fastest versions, from the original", best),
    ]
    if node.parent is not None:
        parts.append(f"What this version changes of the original:\n\n{net_change(node, share)}\n\n")
    for other in [n for n in ranked if n is not node][:FASTEST_SHOWN]:
        status = "checked" if other.verdict == "accepted" else "not checked yet"
        head = f"The version of {other.us:.4g} us ({status}), from the original"
        parts.append(f"{head}:\n\n{net_change(other, share)}\n\n")
    return "".join(part for part in parts if part) or "Nothing was tried yet.\n"


def coder_window(node: Node, plan: str, share: Share = "file") -> str:
    """List the failed rewrites of ``node``, and a similar change that worked.

    Of that as much is shown as ``share`` permits.
    """
    failed = [_line(child, node) for child in _newest(node.children) if not child.sound]
    siblings = [s for s in (node.parent.children if node.parent else []) if s is not node]
    cousins = [c for s in siblings for c in s.children if c.sound and c.parent is not None]
    alike = max(cousins, key=lambda c: _likeness(plan, c), default=None)
    section = _list("Failed on this version", failed)
    if alike is not None and alike.parent is not None and _likeness(plan, alike) >= ALIKE:
        section += f"A similar change elsewhere, which worked:\n\n{shown_change(alike, share, NET_LINES)}\n\n"
    return section


def debugger_window(node: Node) -> str:
    """List the results of the siblings of the failed ``node``."""
    siblings = [s for s in (node.parent.children if node.parent else []) if s is not node]
    return _list("Other versions of the same", [_line(s, node.parent) for s in _newest(siblings)])


def shown_change(node: Node, share: Share, lines: int = LINES_SHOWN) -> str:
    """Show the last change, all of it or only inside the kernel."""
    return _change_from(node.parent or node, node, share, lines)


def net_change(node: Node, share: Share) -> str:
    """Show what ``node`` changes of the original, or of the kernel alone."""
    return _change_from(node.root, node, share, NET_LINES)


def _change_from(before: Node, after: Node, share: Share, lines: int) -> str:
    if share == "kernel":
        texts = [kernel_alone(n.text, n.kernel.name) for n in (before, after)]
    else:
        texts = [before.text, after.text]
    return change(texts[0], texts[1], lines)


def kernel_alone(text: str, name: str) -> str:
    """Return the kernel's lines in ``text``; "" where it is not there."""
    kernel = next((k for k in find_kernels(text).kernels if k.name == name), None)
    if kernel is None:
        return ""
    return "\n".join(split_lines(text).texts[kernel.first_line - 1 : kernel.end_line])


def change(before: str, after: str, most: int = LINES_SHOWN) -> str:
    """Return the changed lines of a rewrite as a fenced diff.

    There is one line around them, and at most ``most``; where they are more, the added ones come first, since the
    others stand in the file before.
    """
    old, new = split_lines(before).texts, split_lines(after).texts
    lines = [
        line for line in difflib.unified_diff(old, new, lineterm="", n=1)
        if not line.startswith(("---", "+++", "@@"))
    ]  # fmt: skip
    if len(lines) > most:
        lines = [line for line in lines if not line.startswith("-")]
    cut = [*lines[:most], "..."] if len(lines) > most else lines
    return fenced("\n".join(cut), "diff")


def _newest(nodes: Sequence[Node]) -> list[Node]:
    return list(reversed(nodes))[:VERSIONS_SHOWN]


def _line(node: Node, base: Node | None) -> str:
    summary = node.step[1] if node.step else "the original"
    if node.failure is not None:
        return f"- {summary}: failed, {_short(node.failure.message)}"
    ratio = f", {base.us / node.us:.2f}x" if base is not None and node.us and base.us != float("inf") else ""
    return f"- {summary}: {node.us:.4g} us{ratio}{', checked' if node.verdict == 'accepted' else ''}"


def _list(head: str, lines: Sequence[str]) -> str:
    return f"{head}:\n" + "\n".join(lines) + "\n\n" if lines else ""


def _likeness(plan: str, node: Node) -> float:
    summary = node.step[1] if node.step else ""
    words, others = set(plan.lower().split()), set(summary.lower().split())
    return len(words & others) / max(1, min(len(words), len(others)))


def _short(text: str, length: int = 400) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 3] + "..."


#: How many lines of the kernel, findings and quantities are listed, and how many characters of a finding.
COSTLY_LINES_SHOWN, FINDINGS_SHOWN, QUANTITIES_SHOWN, ARGUMENTS_SHOWN = 8, 5, 24, 16
FINDING_CHARACTERS = 240


def digest(measurement: KernelMeasurement) -> str:
    """Return the kernel's cost as a Markdown list.

    It has its time and limit, its counters grouped by how they are known, and its costly lines. Quantities of zero are
    left out.
    """
    latency = measurement.latency
    lines = [
        f"- time: {number(Quantity(latency.us, latency.known, unit='us', low=latency.low_us, high=latency.high_us))}"
    ]
    peak = measurement.percent_of_peak
    if measurement.bound or peak is not None:
        parts = [f"limited by {measurement.bound}"] if measurement.bound else []
        parts += [f"{peak:.0f} % of peak ({latency.known})"] if peak is not None else []
        lines.append(f"- {', '.join(parts)}")
    if (fault := measurement.fault) is not None:
        lines.append(f"- no time, since line {fault.line}: {_cut(fault.message)}")
    if measurement.arguments:
        lines.append(f"- launched with: {', '.join(measurement.arguments[:ARGUMENTS_SHOWN])}")
    if measurement.configuration:
        lines.append(f"- configuration: {measurement.configuration}")
    quantities = [(n, q) for n, q in measurement.quantities.items() if q.value][:QUANTITIES_SHOWN]
    for certainty in Known:
        same = [f"{n} {q.value:.4g} {q.unit}".rstrip() for n, q in quantities if q.known is certainty]
        if same:
            lines.append(f"- {certainty}: {', '.join(same)}")
    costly = sorted((c for c in measurement.lines if c.share), key=lambda c: -(c.share or 0.0))[
        :COSTLY_LINES_SHOWN
    ]
    alike: dict[str, list[int]] = {}
    for c in costly:
        alike.setdefault(c.text or f"{100 * (c.share or 0.0):.0f}%", []).append(c.line)
    for text, numbers in alike.items():
        lines.append(
            f"- line {numbers[0]}: {text}"
            if len(numbers) == 1
            else f"- lines {_listed(numbers)}, each: {text}"
        )
    lines += [f"- line {f.line}: {_cut(f.message)}" for f in measurement.findings[:FINDINGS_SHOWN]]
    return "\n".join(lines)


def digests(measurement: KernelMeasurement, others: Sequence[KernelMeasurement]) -> str:
    """Return the kernel's digest, and those of the file's other kernels."""
    parts = [f"`{measurement.name}`:\n{digest(measurement)}" if others else digest(measurement)]
    parts += [f"`{other.name}`, which the problem launches too:\n{digest(other)}" for other in others]
    return "\n\n".join(parts)


def number(quantity: Quantity) -> str:
    """Return the value with its unit, how it is known and its interval."""
    if quantity.value is None:
        return "not measured"
    interval = "" if quantity.low is None else f", {quantity.low:.4g} to {quantity.high:.4g}"
    return f"{quantity.value:.6g} {quantity.unit} ({quantity.known}{interval})".replace("  ", " ")


def _listed(numbers: list[int]) -> str:
    return ", ".join(str(number) for number in sorted(numbers))


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= FINDING_CHARACTERS else line[: FINDING_CHARACTERS - 3].rstrip() + "..."
