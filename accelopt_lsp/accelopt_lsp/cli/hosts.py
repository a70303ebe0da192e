"""``accelopt hosts``: which machines can be reached and what they have."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.opening import host_named, settings_for
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import err, out, print_json, printable, say

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings


@dataclass(frozen=True)
class Reached:
    """What one host answered; ``error`` says why it did not."""

    name: str
    reachable: bool
    python: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    devices: list[dict[str, Any]] = field(default_factory=list)
    memory_bytes: int = 0
    error: str | None = None


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option
def hosts(names: tuple[str, ...], as_json: bool) -> int:
    """What this machine and each host of the settings can run. Exit code 3: one cannot be reached."""
    settings = settings_for(Path.cwd())
    known = ["local", *settings.hosts]
    for name in names:
        if name not in known:
            raise wrong_input(f"There is no host {name!r} in the settings; there is {', '.join(known)}.")
    with err().status("asking ..."):
        reached = asyncio.run(_ask(settings, list(names) or known))
    if as_json:
        print_json({"hosts": reached})
    else:
        _print(reached)
    return Exit.DONE if all(host.reachable for host in reached) else Exit.UNAVAILABLE


async def _ask(settings: Settings, names: list[str]) -> list[Reached]:
    return list(await asyncio.gather(*(_ask_one(settings, name) for name in names)))


async def _ask_one(settings: Settings, name: str) -> Reached:
    from accelopt_profiling.hosts.host import HostUnreachable

    host = host_named(settings, name)
    try:
        facts = await host.facts()
    except HostUnreachable as error:
        return Reached(name, False, error=str(error))
    finally:
        await host.close()
    return Reached(name, True, facts.python, facts.versions, facts.devices, facts.memory_bytes)


def _print(reached: list[Reached]) -> None:
    from rich.table import Table

    table = Table("host", "python", "has", "devices", "memory", box=None, pad_edge=False)
    for host in reached:
        if not host.reachable:
            table.add_row(host.name, "", "cannot be reached", "", "")
            say(f"{host.name}: {host.error}")
            continue
        versions = ", ".join(f"{name} {version}" for name, version in sorted(host.versions.items()))
        devices = ", ".join(str(device.get("name", device)) for device in host.devices) or "none"
        memory = f"{host.memory_bytes / (1 << 30):.0f} GiB" if host.memory_bytes else ""
        table.add_row(*(printable(c) for c in (host.name, host.python, versions, devices, memory)))
    out().print(table)
