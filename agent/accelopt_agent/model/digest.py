"""Summarizes a kernel's cost for a model in a few lines, each number with how it is known."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.quantity import Known, Quantity

#: How many lines of the kernel, findings and quantities are listed, and how many characters of a finding.
LINES_SHOWN, FINDINGS_SHOWN, QUANTITIES_SHOWN, ARGUMENTS_SHOWN = 8, 5, 24, 16
FINDING_CHARACTERS = 240


def digest(measurement: KernelMeasurement) -> str:
    """Return the kernel's cost as a Markdown list: its time and limit, its counters grouped by how they are known, its
    costly lines. Quantities of zero are left out."""
    latency = measurement.latency
    lines = [f"- time: {number(Quantity(latency.us, latency.known, 'us', latency.low_us, latency.high_us))}"]
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
    costly = sorted((c for c in measurement.lines if c.share), key=lambda c: -(c.share or 0.0))[:LINES_SHOWN]
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
    """Return the kernel's digest, and after it those of the file's other kernels, each under its name."""
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
