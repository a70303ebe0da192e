"""List a project's remembered changes as plain data, for a view that shows, uses and forgets them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelopt_agent.experience.standing import PairStanding, standings_of
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.memory_page import gain, tries
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair, StoredSuggestion


def memory_list(folders: Sequence[str], memory: Memory) -> list[dict[str, Any]]:
    """Return the accepted pairs of files below ``folders``, newest first, with the suggestions that repeat each."""
    pairs = [pair for pair in reversed(memory.pairs()) if _is_of(pair, folders)]
    uses = memory.suggestions_by_pair()
    return [_row(one, uses.get(one.pair.id, ())) for one in standings_of(memory, pairs)]


def pair_texts(pair_id: str, memory: Memory) -> dict[str, str]:
    """Return the files before and after a pair's change. Raises UserError: there is no such pair."""
    pair = memory.pair(pair_id)
    if pair is None:
        raise UserError(f"The memory has no pair {pair_id}.")
    return {"slow": pair.slow_text, "fast": pair.fast_text}


def _is_of(pair: Pair, folders: Sequence[str]) -> bool:
    """Whether a pair is of a file below one of the folders; a relative path is one of the project's own memory."""
    file = Path(pair.file)
    return bool(pair.file) and (not file.is_absolute() or any(file.is_relative_to(f) for f in folders))


def _row(one: PairStanding, uses: Sequence[StoredSuggestion]) -> dict[str, Any]:
    pair = one.pair
    return {
        "id": pair.id,
        "kernel": pair.kernel,
        "file": pair.file,
        "summary": pair.summary,
        "gain": gain(one),
        "created": pair.created,
        "tries": tries(one.record),
        "uses": [
            {
                "id": use.id,
                "kernel": use.body.get("kernel", ""),
                "file": use.body.get("file", ""),
                "state": use.state,
            }
            for use in uses
        ],
    }
