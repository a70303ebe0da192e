"""Implements ``accelopt report``: writes measurements as one self-contained HTML file."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import host_option, json_option, target_option
from accelopt_lsp.cli.profile import answer, measured, remember_receipts, request_for
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.resources import open_host, read_source, settings_for

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings
    from accelopt_profiling.measurement import FileMeasurement
    from accelopt_profiling.profiler import ProfileRequest


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
    from accelopt_lsp.cli.report_page import page

    settings = settings_for(Path.cwd(), {"host": host})
    texts = {file: read_source(file) for file in files}
    requests = [
        request_for(file, text, settings_for(file, {"host": host}), target, timeline=True)
        for file, text in texts.items()
    ]
    found = asyncio.run(_profile_all(settings, requests))
    measurements = [dataclasses.replace(m, file=str(f)) for f, m in zip(texts, found, strict=True)]
    try:
        output.write_text(page(measurements, list(texts.values())), encoding="utf-8")
    except OSError as error:
        raise wrong_input(f"{output} cannot be written: {error.strerror}.") from None
    for measurement in measurements:
        remember_receipts(settings, measurement)
    if as_json:
        print_json({"path": str(output), "files": len(files), "kernels": sum(len(m.kernels) for m in found)})
    else:
        click.echo(f"Wrote {output}.")
    return max((answer(measurement) for measurement in measurements), default=Exit.NO)


async def _profile_all(settings: Settings, requests: list[ProfileRequest]) -> list[FileMeasurement]:
    host = open_host(settings)
    try:
        return [await measured(host, request) for request in requests]
    finally:
        await host.close()
