"""Notices that a person took an accepted suggestion back, and records that."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from accelopt_agent.suggestions.accept import items_of
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_memory.memory import Memory
from accelopt_memory.records import pair_id
from accelopt_profiling.plain import from_plain

#: A text that was read while the acceptance was recorded, in seconds before, says nothing about it.
SETTLED = 2.0


def notice_undone(
    memory: Memory, file: str, hashes: Mapping[str, str], settled: float = SETTLED, *, opened: bool = False
) -> list[Suggestion]:
    """Record that accepted suggestions for ``file`` were undone, where its kernels are again what they were before, and
    return these. ``hashes`` maps the content hashes of the kernels in the file to their targets. A file that was
    ``opened``, not saved, says nothing where git has moved to another commit since the acceptance.

    Raises:
        MemoryUnavailableError: the memory cannot be read or written.
    """
    undone = []
    latest = (datetime.now(timezone.utc) - timedelta(seconds=settled)).isoformat(timespec="microseconds")
    for stored in memory.suggestions(file=file, state="accepted"):
        if stored.body.get("base_hash") not in hashes:
            continue
        suggestion = from_plain(Suggestion, stored.body)
        fast = suggestion.fast_hashes
        pair = memory.pair(_pair_of(suggestion))
        back = hashes[suggestion.base_hash] == suggestion.target and not fast & set(hashes)
        moved = opened and pair is not None and _git_moved_since(Path(file), pair.created)
        if back and not moved and pair is not None and pair.created <= latest:
            undo(memory, suggestion)
            undone.append(suggestion)
    return undone


def _git_moved_since(file: Path, moment: str) -> bool:
    """Return whether git has moved to another commit since ``moment`` (ISO format) in the folder of ``file``."""
    for folder in file.absolute().parents:
        place = folder / ".git"
        if place.is_file():  # a linked worktree
            named = place.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
            place = folder / named
        if place.is_dir():
            at = datetime.fromisoformat(moment).timestamp()
            notes = [place / "HEAD", place / "logs" / "HEAD"]
            return any(note.is_file() and note.stat().st_mtime >= at for note in notes)
    return False


def undo(memory: Memory, suggestion: Suggestion) -> None:
    """Withdraw the pair of an accepted suggestion, count that against its steps, and offer it again, in one
    transaction. Raises MemoryUnavailableError."""
    found = _pair_of(suggestion)
    with memory.transaction():
        pair = memory.pair(found)
        items = items_of(memory, suggestion, pair)
        memory.outcomes.mark(
            sorted(items), suggestion.base_hash, suggestion.target, accepted=False, undone=True
        )
        memory.forget(found)
        memory.set_suggestion_state(suggestion.id, "offered")


def _pair_of(suggestion: Suggestion) -> str:
    return pair_id(
        suggestion.dialect, suggestion.target, suggestion.kernel, suggestion.base_text, suggestion.text
    )
