"""Implements ``accelopt explain``: explains why a suggestion is faster."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.surface import call_service
from accelopt_lsp.cli.terminal import print_json, print_markdown
from accelopt_lsp.shapes import step_object
from accelopt_lsp.stderr import say
from accelopt_lsp.suggestion_files import suggestion_of

if TYPE_CHECKING:
    from accelopt_agent.suggestions.suggestion import Suggestion
    from accelopt_lsp.service.local import LocalService
    from accelopt_lsp.service.protocol import Explanation


@click.command()
@click.argument("suggestion_id", metavar="ID")
@click.option("--no-model", is_flag=True, help="Ask no model, whatever the settings say.")
@json_option
def explain(suggestion_id: str, no_model: bool, as_json: bool) -> None:
    """Say why the suggestion ID is faster.

    Names the counters that moved and, where a model may be asked, adds its words."""
    from accelopt_agent.model.ledger import accounts
    from accelopt_profiling.plain import to_plain

    async def work(service: LocalService) -> tuple[Suggestion, Explanation]:
        suggestion, settings = await suggestion_of(service, suggestion_id)
        async with aclosing(service.explain(suggestion.id, settings, not no_model)) as growing:
            async for page in growing:
                if page.pending_model:
                    say(f"Asking {page.pending_model}...")
        return suggestion, page

    suggestion, page = call_service(work)
    if as_json:
        usage: dict[str, Any] = {"ledger": to_plain(accounts(page.calls))}
        steps = [step_object(step) for step in suggestion.way]
        print_json(
            {
                "id": suggestion_id,
                "explanation": page.text,
                "model": page.model or None,
                "usage": usage,
                "steps": steps,
            }
        )
        return
    print_markdown(page.text)
