"""Implements ``accelopt profile``: reports the cost and the correctness of a file's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import (
    host_option,
    isolation_option,
    json_option,
    kernel_file,
    problem_option,
    target_option,
)
from accelopt_lsp.cli.surface import Terminal, call_service
from accelopt_lsp.cli.terminal import err, out, print_json
from accelopt_lsp.resources import read_file, settings_for
from accelopt_lsp.stderr import printable, say
from accelopt_profiling.duration import duration_text

if TYPE_CHECKING:
    from accelopt_lsp.service.local import LocalService
    from accelopt_lsp.service.protocol import FileRequest
    from accelopt_profiling.measurement import FileMeasurement


@click.command()
@kernel_file()
@problem_option
@click.option(
    "--kernel", "kernels", metavar="NAME", multiple=True, help="Only this kernel (may be repeated)."
)
@target_option
@host_option
@isolation_option
@click.option(
    "--trace",
    metavar="OUT.json",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write when each engine does what, for Perfetto (ui.perfetto.dev). NKI kernels only.",
)
@json_option
def profile(
    file: Path,
    problem: str | None,
    kernels: tuple[str, ...],
    target: str | None,
    host: str | None,
    require_isolation: bool | None,
    trace: Path | None,
    as_json: bool,
) -> int:
    """Profile the kernels of FILE and check their results.

    Exit code 1: a kernel is wrong (its result, or an access out of bounds), cannot be launched or did not do its main
    work, or there is none. 2: nothing could be run. 3: the host failed at it.
    """
    if trace is not None and not trace.absolute().parent.is_dir():
        raise wrong_input(f"{trace} cannot be written: there is no folder {trace.parent}.")
    settings = settings_for(file, {"problem": problem, "host": host, "require_isolation": require_isolation})
    kernel_text = read_file(file, settings, target, kernels=kernels)
    _check_names(kernel_text, kernels)
    measurement = profiled([kernel_text], kernels, timeline=trace is not None)[0]
    if trace is not None:
        _write_trace(trace, measurement, kernel_text.text)
    shown = kernel_text.without_ignored(measurement)
    if as_json:
        from accelopt_lsp.shapes import file_object

        print_json(file_object(shown))
    else:
        from accelopt_lsp.cli.tables import print_measurement

        print_measurement(out(), shown)
    return answer(measurement)


def _write_trace(path: Path, measurement: FileMeasurement, text: str) -> None:
    """Write the timelines of the file's kernels; a file without any is said, not an error."""
    import json

    from accelopt_lsp.cli.timeline import trace_object

    kernels = [kernel for kernel in measurement.kernels if kernel.timeline is not None]
    if not kernels:
        say(f"{path} was not written: only NKI kernels that run are scheduled on engines, and there is none.")
        return
    try:
        path.write_text(json.dumps(trace_object(measurement.file, text, kernels)), encoding="utf-8")
    except OSError as error:
        raise wrong_input(f"{path} cannot be written: {error.strerror}.") from None
    say(f"Wrote {path}; open it at https://ui.perfetto.dev (nothing is sent: the page reads the file).")
    for kernel in kernels:
        timeline = kernel.timeline
        if timeline is not None and timeline.shown_us < timeline.us:
            first, whole = duration_text(timeline.shown_us), duration_text(timeline.us)
            say(f"{kernel.name}: the trace shows the first {first} of {whole}.")


def profiled(
    files: Sequence[FileRequest], kernels: Sequence[str] = (), timeline: bool = False
) -> list[FileMeasurement]:
    """Return the complete measurement of each file, on the host of its settings, under the name that it was given by:
    a terminal makes a link of it."""

    async def one(service: LocalService, file: FileRequest) -> FileMeasurement:
        with err().status(f"profiling {printable(file.source.path.name)} on {file.settings.host} ..."):
            async with aclosing(service.profile(file, kernels, timeline)) as growing:
                *_, last = [measurement async for measurement in growing]
        return replace(last, file=file.name)

    async def each(service: LocalService) -> list[FileMeasurement]:
        return [await one(service, file) for file in files]

    return call_service(each, Terminal("The receipts were not kept."))


def _check_names(file: FileRequest, kernels: Sequence[str]) -> None:
    """A ``--kernel`` that is not there is a mistake in the call, not an empty result."""
    names = [kernel.name for kernel in file.source.launched]
    for name in kernels:
        if names and name not in names:
            raise wrong_input(f"{file.source.path.name} has no kernel {name!r}; it has {', '.join(names)}.")


def answer(measurement: FileMeasurement) -> Exit:
    """Return the exit code that a measurement means."""
    from accelopt_profiling.measurement import HOST_FAULTS, NO_TIME_BY

    findings = [*measurement.findings, *(f for kernel in measurement.kernels for f in kernel.findings)]
    if any(kernel.fault is not None for kernel in measurement.kernels):
        return Exit.NO
    if any(finding.code in NO_TIME_BY for finding in findings):
        return Exit.NO
    has_time = any(kernel.latency.us is not None for kernel in measurement.kernels)
    if not has_time and any(
        f.severity == "error" or f.code in ("no-problem", "never-launched", "kernel-raised") for f in findings
    ):
        return Exit.UNAVAILABLE if HOST_FAULTS & {f.code for f in findings} else Exit.WRONG_INPUT
    return Exit.DONE if measurement.kernels else Exit.NO
