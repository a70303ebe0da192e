"""Defines the options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.resources import settings_for
from accelopt_lsp.settings.schema import InvalidValueError, all_settings, nearest, setting_named

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings

F = TypeVar("F", bound=Callable[..., Any])

json_option: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on standard output."
)
problem_option: Callable[[F], F] = click.option(
    "--problem", metavar="FILE", help="The problem: inputs, a reference and tolerances."
)
target_option: Callable[[F], F] = click.option(
    "--target", metavar="NAME", help="The hardware to state costs for, such as h100 (Triton) or trn2 (NKI)."
)
host_option: Callable[[F], F] = click.option(
    "--host", metavar="NAME", help="Where to run: local, or a [hosts.NAME] of the settings."
)

isolation_option: Callable[[F], F] = click.option(
    "--require-isolation", is_flag=True, default=None,
    help="Run nothing on a host that does not isolate kernels completely.",
)  # fmt: skip


def kernel_file(name: str = "file") -> Callable[[F], F]:
    """Return an argument that is an existing file."""
    return click.argument(name, type=click.Path(exists=True, dir_okay=False, path_type=Path))


def search_options(command: F) -> F:
    """Return the command with the options that say how to search; ``search_settings`` reads them."""
    options: list[Callable[[F], F]] = [
        click.option(
            "--strategy", type=click.Choice(all_settings()["search.strategy"].choices),
            help="How to choose what to try next; the setting search.strategy otherwise.",
        ),
        click.option(
            "--sources", metavar="NAMES", help="Who proposes: rules, memory and model, separated by commas."
        ),
        click.option(
            "--set", "given", metavar="NAME=VALUE", multiple=True,
            help="Any other setting for this run, such as search.width=2 or model.samples=2; can be given again.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def search_settings(
    start: Path,
    flags: Mapping[str, Any],
    *,
    strategy: str | None = None,
    sources: str | None = None,
    preset: Mapping[str, Any] | None = None,
    given: Sequence[str] = (),
) -> Settings:
    """Return the settings for ``start`` with the options of ``search_options`` and ``flags`` over them.

    ``preset`` are settings that belong together, below all options.

    Raises:
        CommandError: --set names no setting, or a value that it cannot have. UserError: another flag is wrong.
    """
    values: dict[str, Any] = {**flags, "search.strategy": strategy, "search.sources": sources}
    for text in given:
        name, equals, value = text.partition("=")
        setting = setting_named(name.strip())
        if setting is None or not equals:
            raise wrong_input(f"--set: {text!r} is no NAME=VALUE of a setting{nearest(name, all_settings())}")
        try:
            values[name.strip()] = setting.from_text(value.strip())
        except InvalidValueError as error:
            raise wrong_input(f"--set: {name} {error}.") from None
    chosen = {name: value for name, value in values.items() if value is not None}
    return settings_for(start, {**(preset or {}), **chosen})
