"""Formats measurements and suggestions as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelopt_lsp.features.wording import (
    duration_interval,
    origin,
    percent,
    profiled_at,
    speedup,
    stop_reason,
)
from accelopt_lsp.stderr import printable
from accelopt_profiling.gate.scope import scope_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from accelopt_agent.events import ModelCall
    from accelopt_agent.suggestions.suggestion import Suggestion
    from accelopt_profiling.measurement import FileMeasurement, Finding, KernelMeasurement

#: Lines of a kernel that are listed, costliest first.
LINES_SHOWN = 8


def print_measurement(console: Console, measurement: FileMeasurement) -> None:
    """Print a row per kernel, its costliest lines, then every finding where a compiler would put it."""
    if measurement.kernels:
        console.print(measurement_table([measurement]))
    for kernel in measurement.kernels:
        if kernel.case:
            console.print(printable(f"  {kernel.name}: at {profiled_at(kernel)}"))
        _print_lines(console, measurement.file, kernel)
    for kernel in measurement.kernels:
        if kernel.waiting:
            console.print(printable(f"  {kernel.name} is latency bound: {kernel.waiting}"))
    for finding in measurement.findings:
        console.print(finding_line(measurement.file, finding))
    for kernel in measurement.kernels:
        for finding in kernel.findings:
            console.print(finding_line(measurement.file, finding))
    if not measurement.kernels and not measurement.findings:
        console.print(printable(f"{measurement.file} has no Triton or NKI kernel."))


def measurement_table(measurements: Sequence[FileMeasurement], with_file: bool = False) -> Table:
    from rich.table import Table

    columns = ["kernel", "target", "time", "of peak", "bound by", "result"]
    table = Table(*(["file", *columns] if with_file else columns), box=None, pad_edge=False)
    for measurement in measurements:
        for kernel in measurement.kernels:
            row = _row(kernel, measurement)
            table.add_row(*([printable(measurement.file), *row] if with_file else row))
    return table


def _row(kernel: KernelMeasurement, file: FileMeasurement) -> list[str]:
    stopped = stop_reason(kernel, file.findings)
    peak = "" if kernel.percent_of_peak is None else f"{percent(kernel.percent_of_peak)} %"
    cells = [
        f"{kernel.name}:{kernel.line}",
        kernel.target if kernel.host == "local" else f"{kernel.target} ({kernel.host})",
        duration_interval(kernel.latency),
        peak,
        kernel.bound or "",
        stopped or result_words(kernel),
    ]
    return [printable(cell) for cell in cells]


def result_words(kernel: KernelMeasurement) -> str:
    """Return the status of the check, of how many elements where not all were compared, and that it holds of the
    device's own outputs as well where it does."""
    checked = kernel.correctness
    part = f" ({checked.extent})" if checked.compared < checked.of and checked.compared else ""
    return f"{checked.status}{part}{', on the device too' if checked.status == checked.device == 'passed' else ''}"


def _print_lines(console: Console, file: str, kernel: KernelMeasurement) -> None:
    costly = [line for line in kernel.lines if line.share is not None]
    costly.sort(key=lambda line: (-(line.share or 0.0), line.line))
    for line in costly[:LINES_SHOWN]:
        console.print(printable(f"  {file}:{line.line}  {100 * (line.share or 0.0):3.0f} %  {line.text}"))


def finding_line(file: str, finding: Finding) -> str:
    """``file:line: severity code: message``, which editors and terminals make a link of."""
    return printable(f"{file}:{finding.line}: {finding.severity} {finding.code}: {finding.message}")


def print_suggestion(console: Console, suggestion: Suggestion) -> None:
    """Print the headline, what it does, and the diff."""
    who = origin(suggestion)
    by = who if who.startswith("written by") else f"by {who}"
    console.print(printable(f"{suggestion.id}  {suggestion.kernel}  {speedup(suggestion.speedup)}  {by}"))
    console.print(printable(f"  {suggestion.summary}"))
    console.print(
        printable(f"  {duration_interval(suggestion.slow)} -> {duration_interval(suggestion.fast)}")
    )
    if covered := scope_line(suggestion.gate):
        console.print(printable(f"  checked with {covered}; `accelopt explain {suggestion.id}` lists what"))
    console.print(printable(suggestion.diff), style="dim")


def print_ledger(console: Console, calls: Sequence[ModelCall]) -> None:
    """Print what the calls of models came to, per role and model, then in all; the cost where a price is set. "~" marks
    tokens that were estimated."""
    from rich.table import Column, Table

    from accelopt_agent.model.ledger import accounts, total

    figures = ("calls", "failed", "tokens\nread", "of them\ncached", "tokens\nwritten", "time")
    accounted = [*accounts(calls), total(calls)]
    priced = any(account.money is not None for account in accounted)
    whole = [Column(name, no_wrap=True) for name in (*figures, *(("cost",) if priced else ()))]
    table = Table(
        Column("role", no_wrap=True), Column("model", overflow="fold"), *whole, box=None, pad_edge=False
    )
    for account in accounted:
        about = "~" if account.estimated else ""
        cost = "" if account.money is None else f"{account.money:.4f}"
        table.add_row(
            account.role, printable(account.model), str(account.calls), str(account.faults),
            f"{about}{account.tokens_in}", str(account.tokens_cached), f"{about}{account.tokens_out}",
            f"{account.seconds:.1f} s", *((cost,) if priced else ()),
        )  # fmt: skip
    console.print(table)
