"""Implements ``accelopt bench``: benchmarks of other projects, and in a checkout the project's own measurements."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import click

from accelopt_lsp.cli.failures import CommandError, wrong_input

#: The commands that come with the package, and where each is.
OTHERS = {
    "flashinfer": "accelopt_lsp.cli.bench_sets:flashinfer",
    "kernelbench": "accelopt_lsp.cli.bench_sets:kernelbench",
    "nkibench": "accelopt_lsp.cli.bench_nkibench:nkibench",
}
OWN_PACKAGE = "accelopt_benchmarks"
#: The commands that measure the project itself, and where each is.
OWN = {
    "device": f"{OWN_PACKAGE}.device.commands:device",
    "estimates": f"{OWN_PACKAGE}.published.commands:estimates",
    "foreign": f"{OWN_PACKAGE}.foreign.commands:foreign",
    "gate": f"{OWN_PACKAGE}.gate.commands:gate",
    "hosts": f"{OWN_PACKAGE}.hosts.commands:hosts",
    "memory": f"{OWN_PACKAGE}.memory.commands:memory",
    "nki": f"{OWN_PACKAGE}.nki.commands:nki",
    "rewrite": f"{OWN_PACKAGE}.foreign.commands:rewrite",
    "search": f"{OWN_PACKAGE}.search.commands:search",
    "self": f"{OWN_PACKAGE}.server.commands:self_",
}


class BenchCommands(click.Group):
    """Imports a benchmark's module when the benchmark is used or listed. Those of the project itself are in a package
    that only a checkout has; without it they are not listed, and end with a message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({**OTHERS, **(OWN if in_checkout() else {})})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in OWN and not in_checkout():
            return _refusing(cmd_name)
        place = {**OTHERS, **OWN}.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in {*OTHERS, *OWN} and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " See `accelopt bench --help`."
            raise click.UsageError(f"No such benchmark {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


def in_checkout() -> bool:
    """Return whether the package of the project's own measurements can be imported."""
    return find_spec(OWN_PACKAGE) is not None


def own_module(name: str, command: str) -> Any:
    """Import a module of the project's own measurements for a command. Raises CommandError: there is no checkout."""
    if not in_checkout():
        raise needs_checkout(command)
    return importlib.import_module(f"{OWN_PACKAGE}.{name}")


def needs_checkout(command: str) -> CommandError:
    return wrong_input(
        f"`accelopt {command}` needs a checkout of AccelOpt LSP: clone the repository, "
        "run `pip install --editable .` in it, and call the command of that installation."
    )


def _refusing(name: str) -> click.Command:
    def refuse(arguments: Sequence[str]) -> Any:
        raise needs_checkout(f"bench {name}")

    settings = {"ignore_unknown_options": True, "help_option_names": []}
    arguments = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
    return click.Command(name, callback=refuse, params=[arguments], context_settings=settings)


@click.group(cls=BenchCommands)
def bench() -> None:
    """Run published benchmarks, and from a checkout our own."""
