"""Implements ``accelopt profile``: reports the cost and the correctness of a file's kernels."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.options import (
    host_option,
    isolation_option,
    json_option,
    kernel_file,
    problem_option,
    target_option,
)
from accelopt_lsp.cli.terminal import err, out, print_json
from accelopt_lsp.resources import open_host, open_memory, read_source, settings_for, targets_for
from accelopt_lsp.stderr import printable, say
from accelopt_profiling.duration import duration_text

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings
    from accelopt_profiling.hosts.host import Host
    from accelopt_profiling.measurement import FileMeasurement
    from accelopt_profiling.profiler import ProfileRequest


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
    request = request_for(file, read_source(file), settings, target, kernels, timeline=trace is not None)
    _check_names(request)
    found = asyncio.run(_profile(settings, request))
    remember_receipts(settings, found)
    measurement = dataclasses.replace(
        found, file=str(file)
    )  # as it was named, so that a terminal makes a link
    if trace is not None:
        _write_trace(trace, measurement, request.file.text)
    if as_json:
        from accelopt_lsp.cli.shapes import file_object

        print_json(file_object(measurement))
    else:
        from accelopt_lsp.cli.tables import print_measurement

        print_measurement(out(), measurement)
    return answer(measurement)


def _write_trace(path: Path, measurement: FileMeasurement, text: str) -> None:
    """Write the timelines of the file's kernels; a file without any is said, not an error."""
    import json

    from accelopt_lsp.cli.timeline import trace_object

    shown = [kernel for kernel in measurement.kernels if kernel.timeline is not None]
    if not shown:
        say(f"{path} was not written: only NKI kernels that run are scheduled on engines, and there is none.")
        return
    try:
        path.write_text(json.dumps(trace_object(measurement.file, text, shown)), encoding="utf-8")
    except OSError as error:
        raise wrong_input(f"{path} cannot be written: {error.strerror}.") from None
    say(f"Wrote {path}; open it at https://ui.perfetto.dev (nothing is sent: the page reads the file).")
    for kernel in shown:
        timeline = kernel.timeline
        if timeline is not None and timeline.shown_us < timeline.us:
            first, whole = duration_text(timeline.shown_us), duration_text(timeline.us)
            say(f"{kernel.name}: the trace shows the first {first} of {whole}.")


def request_for(
    file: Path,
    text: str,
    settings: Settings,
    target: str | None = None,
    kernels: tuple[str, ...] = (),
    timeline: bool = False,
    among_others: bool = False,
) -> ProfileRequest:
    """Return the question to ask about a file under its settings. ``among_others``: ``target`` may be meant for other
    files alone."""
    from accelopt_profiling.examination import examine
    from accelopt_profiling.profiler import ProfileRequest

    examined = examine(file.resolve(), text, project_root=settings.project_root, problem=settings.problem)
    chosen = [k for k in examined.kernels if not kernels or k.name in kernels]
    return ProfileRequest(
        examined,
        targets_for(settings, target, chosen, ("triton", "nki") if among_others else None),
        kernels=kernels or None,
        limits=settings.job_limits,
        timeline=timeline,
    )


async def _profile(settings: Settings, request: ProfileRequest) -> FileMeasurement:
    host = open_host(settings)
    try:
        return await measured(host, request)
    finally:
        await host.close()


async def measured(host: Host, request: ProfileRequest) -> FileMeasurement:
    """Return the complete measurement of one file."""
    from accelopt_profiling.profiler import profile as run_profile

    last: FileMeasurement | None = None
    with err().status(f"profiling {printable(request.file.path.name)} on {host.name} ..."):
        async with aclosing(run_profile(host, request)) as growing:
            async for measurement in growing:
                last = measurement
    if last is None:
        raise CommandError(Exit.UNAVAILABLE, f"{host.name} gave no answer for {request.file.path}.")
    return last


def _check_names(request: ProfileRequest) -> None:
    """A ``--kernel`` that is not there is a mistake in the call, not an empty result."""
    names = [kernel.name for kernel in request.file.kernels]
    for asked in request.kernels or ():
        if names and asked not in names:
            raise wrong_input(f"{request.file.path.name} has no kernel {asked!r}; it has {', '.join(names)}.")


def remember_receipts(settings: Settings, measurement: FileMeasurement) -> None:
    """Keep the evidence, so that ``accelopt replay`` can find it. A memory that cannot be used costs only
    that."""
    if not measurement.receipts:
        return
    from accelopt_memory.errors import MemoryUnavailableError

    try:
        with open_memory(settings) as memory:
            for receipt in measurement.receipts:
                memory.add_receipt(receipt)
    except MemoryUnavailableError as error:
        say(f"The receipts were not kept. {error}")


def answer(measurement: FileMeasurement) -> Exit:
    """Return the exit code that a measurement means."""
    from accelopt_profiling.measurement import HOST_FAULTS, NO_TIME_BY

    findings = [*measurement.findings, *(f for kernel in measurement.kernels for f in kernel.findings)]
    if any(kernel.fault is not None for kernel in measurement.kernels):
        return Exit.NO
    if any(finding.code in NO_TIME_BY for finding in findings):
        return Exit.NO
    known = any(kernel.latency.us is not None for kernel in measurement.kernels)
    if not known and any(
        f.severity == "error" or f.code in ("no-problem", "never-launched", "kernel-raised") for f in findings
    ):
        return Exit.UNAVAILABLE if HOST_FAULTS & {f.code for f in findings} else Exit.WRONG_INPUT
    return Exit.DONE if measurement.kernels else Exit.NO
