"""Implements ``accelopt explain``: explains why a suggestion is faster."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelopt_lsp.cli.accept import suggestion_named
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import print_json, print_markdown
from accelopt_lsp.resources import memory_with, settings_for
from accelopt_lsp.stderr import say

if TYPE_CHECKING:
    from accelopt_agent.model.settings import ModelSettings
    from accelopt_agent.suggestions.suggestion import Suggestion
    from accelopt_lsp.explain import Explanation
    from accelopt_memory.memory import Memory


@click.command()
@click.argument("suggestion_id", metavar="ID")
@click.option("--no-model", is_flag=True, help="Ask no model, whatever the settings say.")
@json_option
def explain(suggestion_id: str, no_model: bool, as_json: bool) -> None:
    """Say why the suggestion ID is faster.

    Names the counters that moved and, where a model may be asked, adds its words."""
    from accelopt_agent.model.ledger import accounts
    from accelopt_lsp.models import resolve_team
    from accelopt_profiling.plain import to_plain

    with memory_with(suggestion_id)[0] as memory:
        suggestion = suggestion_named(memory, suggestion_id)
        file = Path(suggestion.file)
        team, why_not = (None, "No model was asked.") if no_model else resolve_team(settings_for(file), file)
        found = asyncio.run(_last(suggestion, memory, team.summarizer if team else None, why_not))
    if as_json:
        usage: dict[str, Any] = {"ledger": to_plain(accounts(found.calls))}
        print_json(
            {"id": suggestion.id, "explanation": found.text, "model": found.model or None, "usage": usage}
        )
        return
    print_markdown(found.text)


async def _last(
    suggestion: Suggestion, memory: Memory, model: ModelSettings | None, why_not: str
) -> Explanation:
    from accelopt_lsp.explain import explanations

    async with aclosing(explanations(suggestion, memory, model, why_not)) as growing:
        async for found in growing:
            if model is not None and not found.calls:
                say(f"Asking {model.model}...")
    return found
