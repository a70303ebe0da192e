"""The full table of a kernel, as Markdown or as plain text."""

from __future__ import annotations

from accelopt_lsp.features.wording import (
    WRONG,
    change,
    escaped,
    headline,
    origin,
    percent,
    profiled_at,
    quantity,
    speedup,
    stop_reason,
)
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.quantity import Quantity


def hover(state: Document, line: int, markdown: bool) -> str | None:
    """Return what is known about the kernel around the 1-based ``line``, on its head (decorators to ``def``),
    and about a single line where that line has a cost; None elsewhere."""
    kernel = state.kernel_at(line)
    if kernel is None or kernel.shown is None:
        return None
    if line <= kernel.kernel.line:
        return _kernel(kernel, kernel.shown, markdown)
    return None if kernel.old else _line(kernel.shown, line, markdown)


def _kernel(kernel: KernelState, result: KernelMeasurement, markdown: bool) -> str:
    strong, escape = "**" if markdown else "", _shown if markdown else str
    parts = [f"{strong}{escape(kernel.kernel.name)}{strong}: {escape(headline(result))}"]
    if kernel.old:
        parts.append("This is the result for the text before the last edit. Save to profile again.")
    elif changed := change(kernel.before, result):
        parts.append(f"{str(changed).capitalize()}.")
    parts.append(escape(_correctness(result)))
    if result.case:
        parts.append(f"Profiled at {escape(profiled_at(result))}.")
    time = result.latency
    rows = [
        (
            "time",
            quantity(Quantity(time.us, time.known, unit="us", low=time.low_us, high=time.high_us)),
            str(time.known),
        )
    ]
    quantities = dict(result.quantities)
    peak = quantities.pop("percent_of_peak", None)
    if peak is not None:
        rows.append(("of peak", quantity(peak), str(peak.known)))
    elif result.percent_of_peak is not None:
        rows.append(("of peak", f"{percent(result.percent_of_peak)} %", str(result.latency.known)))
    rows += [(name.replace("_", " "), quantity(q), str(q.known)) for name, q in quantities.items()]
    parts.append(_table(rows, markdown))
    if kernel.offers:
        parts.append(
            "\n".join(
                f"- {speedup(s.speedup)}: {escape(s.summary)} ({escape(origin(s))})"
                for s in kernel.offers[:5]
            )
        )
    about = [f"target {result.target}", f"host {result.host}"]
    about += [f"{name} {version}" for name, version in result.toolchain.items()]
    if result.receipt:
        about.append(f"receipt {result.receipt}")
    parts.append(escape(", ".join(about)))
    return "\n\n".join(parts)


def _line(result: KernelMeasurement, line: int, markdown: bool) -> str | None:
    cost = next((c for c in result.lines if c.line == line), None)
    if cost is None:
        return None
    escape = _shown if markdown else str
    parts = [escape(cost.text)] if cost.text else []
    if cost.share is not None:
        parts.append(f"{percent(cost.share * 100)} % of what limits {escape(result.name)}")
    rows = [(name.replace("_", " "), quantity(q), str(q.known)) for name, q in cost.quantities.items()]
    if rows:
        parts.append(_table(rows, markdown))
    return "\n\n".join(parts) or None


def _correctness(result: KernelMeasurement) -> str:
    checked = result.correctness
    if checked.status != "passed" and (stopped := stop_reason(result)) and stopped != WRONG:
        return f"The result could not be checked: {stopped}."
    detail = f"{checked.detail[:1].upper()}{checked.detail[1:].removesuffix('.')}." if checked.detail else ""
    if checked.status == "not checked":
        return f"Result not checked. {detail}".strip()
    share = f" ({checked.extent} compared)" if checked.extent else ""
    verdict = "agrees with" if checked.status == "passed" else "DISAGREES with"
    where = " So do the results of the device." if checked.status == checked.device == "passed" else ""
    return f"The result {verdict} the reference{share}.{where} {detail}".strip()


def _table(rows: list[tuple[str, str, str]], markdown: bool) -> str:
    if markdown:
        body = [f"| {_shown(name)} | {_shown(value)} | {certainty} |" for name, value, certainty in rows]
        return "\n".join(["| what | value | how known |", "|---|---:|---|", *body])
    return "\n".join(f"{name}: {value} ({certainty})" for name, value, certainty in rows)


def _shown(text: str) -> str:
    """Return a text as Markdown that shows it as it is, on one line."""
    return escaped(" ".join(text.split()))
