"""Read ``actions.json``: everything that a person can ask the server for, one row each.

The server's first answer needs it, so it imports nothing heavy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple


class Offer(NamedTuple):
    """A code action of an action: ``fixes`` are codes of the findings that it mends, ``note`` is for the reference."""

    kind: str
    title: str
    fixes: tuple[str, ...] = ()
    note: str = ""


class Action(NamedTuple):
    """A row of the file, which says what each field is."""

    name: str
    arguments: tuple[str, ...]
    does: str
    runs: str = ""
    job: str = ""
    offers: dict[str, Offer] = {}
    command_line: str = ""

    @property
    def command(self) -> str:
        """The name of the server command."""
        return f"accelopt.server.{self.name}"


def _action(row: dict[str, Any]) -> Action:
    offers = {name: Offer(**offer) for name, offer in row.pop("offers", {}).items()}
    row.pop("palette", None)
    return Action(**row, offers=offers)


#: Every action by its name, in the order in which code actions are offered.
ACTIONS: dict[str, Action] = {
    row["name"]: _action(row)
    for row in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))["actions"]
}

#: The kinds of code actions in that order.
KINDS: tuple[str, ...] = tuple(
    dict.fromkeys(offer.kind for action in ACTIONS.values() for offer in action.offers.values())
)

SUGGESTION = ACTIONS["accept"].offers[""].kind
QUICKFIX = ACTIONS["createProblem"].offers["missing"].kind
