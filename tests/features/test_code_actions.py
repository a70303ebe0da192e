"""The table of actions: what it names exists, and each row is whole."""

from __future__ import annotations

import json
import string
from importlib.resources import files

import click
import pytest

from accelopt_lsp.actions import ACTIONS, Action
from accelopt_lsp.cli.main import accelopt
from accelopt_lsp.server.commands import Arguments
from accelopt_profiling.measurement import LIMITS

CODES = json.loads(files("accelopt_profiling").joinpath("findings.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("action", ACTIONS.values(), ids=lambda a: a.name)
def test_a_row_names_what_exists(action: Action) -> None:
    assert {a.removesuffix("?") for a in action.arguments} <= set(Arguments.__dataclass_fields__)
    assert {code for offer in action.offers.values() for code in offer.fixes} <= set(CODES)
    for offer in action.offers.values():
        assert offer.kind.startswith(
            ("refactor.rewrite.accelopt.", "quickfix.accelopt", "source.accelopt.", "accelopt.")
        )
    assert {name for _, name, _, _ in string.Formatter().parse(action.job) if name} <= {
        "file",
        "kernel",
        "id",
    }
    if action.command_line:
        command: click.Command = accelopt
        context = click.Context(command)
        for word in action.command_line.split(" --")[0].split():
            assert isinstance(command, click.Group)
            step = command.get_command(context, word)
            assert step is not None, action.command_line
            command = step


def test_every_limit_that_ends_a_run_can_be_raised() -> None:
    assert set(ACTIONS["raiseLimit"].offers[""].fixes) == set(LIMITS)
