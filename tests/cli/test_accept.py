"""What an older gate accepted is offered and accepted no more: it did not look whether the target can launch it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from support.command import Command
from support.toy_search import TEXT, WIDE, ToyProposer, play, request

from accelopt_agent.events import SuggestionFound
from accelopt_lsp.errors import UserError
from accelopt_lsp.service.local import LocalService
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.settings.load import load_settings
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.plain import to_plain


@pytest.mark.parametrize("version", ["today's", "older", "unreadable"])
def test_a_suggestion_of_an_older_gate_is_offered_and_accepted_no_more(
    accelopt: Command, home: Path, version: str
) -> None:
    path = home / "k.py"
    path.write_text(TEXT)
    with Memory.open(home / "memory.db") as memory:
        events = asyncio.run(play([ToyProposer(WIDE)], memory, replace(request(), file=examine(path, TEXT))))
        (suggestion,) = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
        if version != "today's":
            memory.save_suggestion(
                to_plain(replace(suggestion, gate=Verdict(True)))
                | ({"speedup": 2.0} if version == "unreadable" else {})
            )
    assert asyncio.run(_offered(path, suggestion.id)) == ([suggestion.id] * 2 if version == "today's" else [])
    ended = accelopt("accept", suggestion.id)
    assert ended.code == {"today's": 0, "older": 1, "unreadable": 2}[version], ended.err
    assert (path.read_text() == TEXT) == (version != "today's")
    assert ("accelopt optimize" in ended.err) == (version == "older")


async def _offered(path: Path, suggestion_id: str) -> list[str]:
    """The ids of what an editor is offered for a file, and finds by its id."""
    settings = load_settings(path, flags={"target.nki": "trn1"})
    file, service = FileRequest(examine(path, TEXT), settings), LocalService()
    try:
        stored = (await service.stored_searches(file)).suggestions
        with contextlib.suppress(UserError):
            by_id = await service.suggestion(suggestion_id, settings)
            assert by_id is not None
            stored = [*stored, by_id]
    finally:
        await service.close()
    return [s.id for s in stored]
