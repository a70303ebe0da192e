"""Implements ``accelopt hosts``: lists the machines that can be reached and their hardware."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import err, out, print_json
from accelopt_lsp.reached_hosts import Reached, reach
from accelopt_lsp.resources import settings_for
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option
def hosts(names: tuple[str, ...], as_json: bool) -> int:
    """Show what this machine and each configured host has and does. Exit code 3: one cannot be reached."""
    settings = settings_for(Path.cwd())
    host_names = ["local", *settings.hosts]
    for name in names:
        if name not in host_names:
            raise wrong_input(f"There is no host {name!r} in the settings; there is {', '.join(host_names)}.")
    with err().status("asking ..."):
        reached = asyncio.run(_ask(settings, list(names) or host_names))
    if as_json:
        print_json({"hosts": reached})
    else:
        _print(reached)
    return Exit.DONE if all(host.reachable for host in reached) else Exit.UNAVAILABLE


async def _ask(settings: Settings, names: list[str]) -> list[Reached]:
    return list(await asyncio.gather(*(reach(settings, name) for name in names)))


def _print(reached: list[Reached]) -> None:
    from rich.table import Table

    table = Table("host", "python", "has", "devices", "memory free", "does", box=None, pad_edge=False)
    for host in reached:
        if not host.reachable:
            table.add_row(host.name, "", "cannot be reached", "", "", "")
            say(f"{host.name}: {host.error}")
            continue
        versions = ", ".join(f"{name} {version}" for name, version in sorted(host.versions.items()))
        row = (
            host.name,
            host.python,
            versions,
            ", ".join(host.device_names) or "none",
            _memory(host),
            _doing(host),
        )
        table.add_row(*(printable(cell) for cell in row))
        if host.isolation is not None and host.isolation.note:
            say(f"{host.name}: {host.isolation.note}.")
    out().print(table)


def _memory(host: Reached) -> str:
    if not host.memory_bytes:
        return ""
    total = f"{host.memory_bytes / (1 << 30):.0f} GiB"
    return f"{host.memory_free_bytes / (1 << 30):.0f} of {total}" if host.memory_free_bytes else total


def _doing(host: Reached) -> str:
    """Return one line per job: the step, its kernel file and since when; then who has the devices to
    themselves."""
    assert host.activity is not None
    lines = []
    for worker in host.activity.workers:
        for job in worker.jobs:
            mark = {"holds": " on the device", "waits": " (waits for the device)"}.get(job.device, "")
            lines.append(f"{job.step} {Path(job.kernel).name}{mark}, {job.seconds:.0f} s")
        if worker.waiting:
            lines.append(f"{worker.waiting} waiting")
    holding = any(job.device == "holds" for worker in host.activity.workers for job in worker.jobs)
    if host.activity.device and not holding:
        lines.append(f"device held for {Path(host.activity.device).name}")
    return "\n".join(lines) or "nothing"
