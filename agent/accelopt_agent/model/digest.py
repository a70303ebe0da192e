"""What a model is told about a kernel's cost: a few lines, each number with how it is known."""

from __future__ import annotations

from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.quantity import Quantity

#: How many lines of the kernel and how many quantities are told of.
LINES_TOLD = 6
QUANTITIES_TOLD = 12


def digest(measurement: KernelMeasurement) -> str:
    """The kernel's cost as a Markdown list."""
    latency = measurement.latency
    said = [f"- time: {number(Quantity(latency.us, latency.known, 'us', latency.low_us, latency.high_us))}"]
    if measurement.percent_of_peak is not None:
        said.append(f"- percent of peak: {measurement.percent_of_peak:.0f} % ({latency.known})")
    if measurement.bound:
        said.append(f"- limited by: {measurement.bound}")
    for name, quantity in list(measurement.quantities.items())[:QUANTITIES_TOLD]:
        said.append(f"- {name}: {number(quantity)}")
    costly = sorted((c for c in measurement.lines if c.share), key=lambda c: -(c.share or 0.0))[:LINES_TOLD]
    said += [f"- line {c.line}: {100 * (c.share or 0.0):.0f} % of what limits it; {c.text}" for c in costly]
    said += [f"- line {f.line}: {f.message}" for f in measurement.findings[:LINES_TOLD]]
    return "\n".join(said)


def number(quantity: Quantity) -> str:
    """The value with its unit, how it is known and its interval."""
    if quantity.value is None:
        return "not measured"
    interval = "" if quantity.low is None else f", {quantity.low:.4g} to {quantity.high:.4g}"
    return f"{quantity.value:.6g} {quantity.unit} ({quantity.known}{interval})".replace("  ", " ")
