"""Implements ``accelopt model``: shows the configured model and what is sent to it, and records consent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.models import configured_team, consent_folder
from accelopt_lsp.resources import settings_for
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_agent.model.team import ModelTeam


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def model(context: click.Context, as_json: bool) -> int:
    """Show which model is asked, and what is sent to it.

    Exit code 1: no model is configured, or nobody agreed that it is asked.
    """
    if context.invoked_subcommand is not None:
        return Exit.DONE
    from accelopt_agent.model.consent import ConsentStore, is_loopback, required_consent, what_is_sent

    team, workspace = _configured()
    missing = ConsentStore().missing(team.planner, workspace)
    sent = what_is_sent(team.planner.share, required_consent(team.planner, workspace).key)
    if as_json:
        print_json(
            {
                "model": team.planner.model, "models": team.models, "address": team.planner.base_url,
                "workspace": str(workspace), "sent": sent, "agreed": missing is None,
                "stays_here": is_loopback(team.planner.base_url),
            }
        )  # fmt: skip
        return Exit.DONE if missing is None else Exit.NO
    print_disclosure(team, workspace)
    if missing is not None:
        say("Not agreed to: the model is not asked. `accelopt model agree` agrees.")
        return Exit.NO
    here = is_loopback(team.planner.base_url)
    click.echo("The address is this machine: nothing leaves it." if here else "Agreed to.")
    return Exit.DONE


@model.command()
def agree() -> None:
    """Agree that this project's kernels are sent to the address."""
    from accelopt_agent.model.consent import ConsentStore, required_consent

    team, workspace = _configured()
    print_disclosure(team, workspace)
    consents = ConsentStore()
    try:
        consents.give(required_consent(team.planner, workspace))
    except OSError as error:
        raise CommandError(
            Exit.UNAVAILABLE, f"{consents.path} cannot be written: {error.strerror}."
        ) from None
    click.echo(f"Agreed, and kept in {consents.path}.")


@model.command()
def withdraw() -> int:
    """Take the agreement back."""
    from accelopt_agent.model.consent import ConsentStore, required_consent

    team, workspace = _configured()
    consents = ConsentStore()
    try:
        withdrawn = consents.withdraw(required_consent(team.planner, workspace))
    except OSError as error:
        raise CommandError(
            Exit.UNAVAILABLE, f"{consents.path} cannot be written: {error.strerror}."
        ) from None
    say("Withdrawn." if withdrawn else "There was no agreement.")
    return Exit.DONE if withdrawn else Exit.NO


@model.command()
def key() -> None:
    """Keep the key for the configured address in the system keyring. It is typed, not given as an argument."""
    from accelopt_agent.model.keys import keep_key

    team, _ = _configured()
    typed = click.prompt(f"Key for {team.planner.base_url}", hide_input=True, err=True).strip()
    if not typed:
        raise wrong_input("The key is empty; nothing was kept.")
    if not keep_key(team.planner.base_url, typed):
        variable = team.planner.key_variable
        why = f"This system has no keyring that can be used; set {variable} in the environment instead."
        raise CommandError(Exit.UNAVAILABLE, why)
    click.echo("Kept in the system keyring.")


def print_disclosure(team: ModelTeam, workspace: Path) -> None:
    """Say what is sent where, on standard error."""
    from accelopt_agent.model.consent import required_consent, what_is_sent

    planner = team.planner
    where = "of the editor" if planner.of_editor else f"at {planner.base_url}"
    say(f"The model {team.models} {where} is sent, for kernels below {workspace}:")
    for part in what_is_sent(planner.share, required_consent(planner, workspace).key):
        say(f"  - {part}")
    if planner.share == "file":
        say('`model.share = "kernel"` in your settings limits this to the kernel and the digest.')


def _configured() -> tuple[ModelTeam, Path]:
    here = Path.cwd()
    settings = settings_for(here)
    team = configured_team(settings)
    if team is None:
        why = "No model is configured; set model.base_url and model.model in your settings."
        raise CommandError(Exit.NO, printable(why))
    return team, consent_folder(settings, here / "kernel.py")
