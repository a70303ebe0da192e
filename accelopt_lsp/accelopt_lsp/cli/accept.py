"""Implements ``accelopt accept`` and ``accelopt reject``, which record a person's decision about a suggestion."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.surface import call_service
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.stderr import printable, say
from accelopt_lsp.suggestion_files import apply_to_file, suggestion_of

if TYPE_CHECKING:
    from accelopt_agent.suggestions.suggestion import Suggestion
    from accelopt_lsp.service.local import LocalService


@click.command()
@click.argument("suggestion_id", metavar="ID")
@click.option("--no-apply", is_flag=True, help="Only remember it: the edit was made already.")
@json_option
def accept(suggestion_id: str, no_apply: bool, as_json: bool) -> None:
    """Apply the suggestion ID and remember its slow-fast pair."""
    from accelopt_lsp.features.wording import times

    async def work(service: LocalService) -> tuple[Suggestion, bool, str]:
        suggestion, settings = await suggestion_of(service, suggestion_id)
        applied = not no_apply and apply_to_file(suggestion)
        return suggestion, applied, await service.accept(suggestion.id, settings)

    suggestion, changed, pair = call_service(work)
    if as_json:
        print_json({"id": suggestion.id, "file": suggestion.file, "applied": changed, "pair": pair})
        return
    if changed:
        say(f"Changed {suggestion.file}.")
    click.echo(
        printable(f"Remembered as pair {pair}: {suggestion.kernel}, {times(suggestion.speedup.value)}.")
    )


@click.command()
@click.argument("suggestion_id", metavar="ID")
@click.option("--reason", default="", help="Why, for those who look at the memory later.")
@click.option("--undo", is_flag=True, help="Offer it again.")
@json_option
def reject(suggestion_id: str, reason: str, undo: bool, as_json: bool) -> None:
    """Do not offer the suggestion ID again.

    At a terminal one key may tell why: w(rong), s(lower), u(nreadable), n(ot now); any other tells nothing.
    """

    async def work(service: LocalService) -> tuple[Suggestion, str | None]:
        suggestion, settings = await suggestion_of(service, suggestion_id)
        if undo:
            await service.offer_again(suggestion.id, settings)
            return suggestion, None
        rejection = await service.reject(suggestion.id, settings, reason)
        if not reason and not as_json and sys.stdin.isatty() and (why := _key_pressed()):
            rejection = await service.reject(suggestion.id, settings, why)
        return suggestion, rejection

    suggestion, rejection = call_service(work)
    if as_json:
        print_json({"id": suggestion.id, "rejection": rejection})
    else:
        then = "Offered again." if undo else "Not offered again; `--undo` takes that back."
        click.echo(printable(f"{suggestion.kernel}: {suggestion.summary} {then}"))


def _key_pressed() -> str:
    """Ask for one key, and return the reason that it stands for."""
    from accelopt_agent.suggestions.suggestion import REASONS

    keys = {reason[0]: reason for reason in REASONS}
    say(
        "Why? "
        + ", ".join(f"{key} = {reason}" for key, reason in keys.items())
        + ", any other key: no reason"
    )
    return keys.get(click.getchar().lower(), "")
