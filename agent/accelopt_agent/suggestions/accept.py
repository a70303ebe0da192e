"""Records in the memory that a person accepted or rejected a suggestion, or took an accepted one back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import cast

from accelopt_agent.suggestions.lesson import lesson_of
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_agent.syntax.fingerprint import rewrite_fingerprint
from accelopt_agent.transfer.edit_transfer import reproduces
from accelopt_agent.transfer.pair_edit import edit_id, read_edit
from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import Outcome
from accelopt_memory.records import Pair, Rejection, pair_id
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.plain import from_plain, to_plain


def accept(memory: Memory, suggestion: Suggestion) -> str:
    """Store the suggestion as a slow-fast pair, mark it as accepted, and return the pair's id, in one transaction:
    a kill leaves both or neither. Accepting twice keeps one pair.

    Raises:
        MemoryUnavailableError: nothing was stored.
        ValueError: one of the suggestion's texts does not hold its kernel.
    """
    pair = replace(pair_of(suggestion), lesson=lesson_of(memory, suggestion))
    with memory.transaction():
        added = memory.add_pair(pair)
        memory.save_suggestion(_plain(suggestion), "accepted")
        _note_acceptance(memory, suggestion, pair)
    return added


def reject(memory: Memory, suggestion: Suggestion, reason: str = "") -> str:
    """Store that this rewrite of this kernel is not wanted, so that it is not offered again, and mark the suggestion
    as rejected, in one transaction. Again with another ``reason``, that replaces the one before.

    Raises:
        MemoryUnavailableError: nothing was stored.
    """
    rejection = Rejection(
        kernel_hash=suggestion.base_hash,
        candidate_id=rewrite_fingerprint(suggestion.base_text, suggestion.text, suggestion.kernel),
        origin=suggestion.origin,
        reason=reason,
        kernel=suggestion.kernel,
        suggestion=suggestion.id,
    )
    with memory.transaction():
        memory.forget(rejection.id)
        rejection_id = memory.add_rejection(rejection)
        memory.withdraw_unaccepted(
            pair_id(
                suggestion.dialect,
                suggestion.target,
                kernel=suggestion.kernel,
                slow_text=suggestion.base_text,
                fast_text=suggestion.text,
            )
        )
        memory.save_suggestion(_plain(suggestion), "rejected")
    return rejection_id


def offer_again(memory: Memory, suggestion: Suggestion) -> None:
    """Take back what was decided about the suggestion, in one transaction: its pair or its rejection is forgotten.

    Raises:
        MemoryUnavailableError: nothing was changed.
    """
    stored = memory.suggestion(suggestion.id)
    if stored is not None and stored.state == "accepted":
        undo(memory, suggestion)
        return
    with memory.transaction():
        for rejection in memory.rejected(suggestion.base_hash):
            if rejection.suggestion == suggestion.id:
                memory.forget(rejection.id)
        memory.save_suggestion(_plain(suggestion), "offered")


def _note_acceptance(memory: Memory, suggestion: Suggestion, pair: Pair) -> None:
    """Count the acceptance for each step that led here, and for the edit as a whole."""
    if not pair.example:
        ratio = math.log(1 / pair.speedup) if pair.speedup else None
        item = f"edit:{pair.edit}"
        outcome = Outcome(
            item,
            pair.slow_hash,
            bound=pair.bound,
            dialect=pair.dialect,
            target=pair.target,
            log_ratio=ratio,
            rewrite=pair.fast_hash,
            accepted=True,
        )
        memory.outcomes.add(outcome)
    items = items_of(memory, suggestion, pair)
    memory.outcomes.mark(sorted(items), pair.slow_hash, pair.target, accepted=True)


def items_of(memory: Memory, suggestion: Suggestion, pair: Pair | None) -> set[str]:
    """Return what a decision about a suggestion is about: its steps, and the edit of its ``pair``."""
    steps = suggestion.steps or (suggestion.origin,)
    remembered = [memory.pair(s.removeprefix("memory:")) for s in steps if s.startswith("memory:")]
    items = {step for step in steps if not step.startswith("memory:")}
    return items | {f"edit:{p.edit or p.id}" for p in (*remembered, pair) if p is not None}


def pair_of(suggestion: Suggestion) -> Pair:
    """Return the slow-fast pair of an accepted suggestion.

    Raises:
        ValueError: one of its texts does not hold its kernel.
    """
    fast = sorted(suggestion.fast_hashes)
    if not fast:
        raise ValueError(f"the suggestion {suggestion.id} does not hold the kernel {suggestion.kernel}")
    edit = read_edit(suggestion.base_text, suggestion.text)
    return Pair(
        kernel=suggestion.kernel,
        dialect=cast(Dialect, suggestion.dialect),
        target=suggestion.target,
        slow_text=suggestion.base_text,
        fast_text=suggestion.text,
        slow_hash=suggestion.base_hash,
        fast_hash=fast[0],
        origin=suggestion.origin,
        summary=suggestion.summary,
        features=kernel_features(suggestion.base_text, suggestion.kernel, suggestion.bound),
        slow=suggestion.slow,
        fast=suggestion.fast,
        steps=suggestion.steps or (suggestion.origin,),
        host=suggestion.host,
        file=suggestion.file,
        bound=suggestion.bound,
        fast_bound=suggestion.fast_bound,
        moved=suggestion.moved,
        receipts=(suggestion.gate.receipt,) if suggestion.gate.receipt else (),
        edit=edit_id(edit),
        example=not reproduces(suggestion.base_text, suggestion.text, suggestion.kernel),
    )


def _plain(suggestion: Suggestion) -> dict[str, object]:
    plain: dict[str, object] = to_plain(suggestion)
    return plain


def notice_undone(
    memory: Memory, file: str, hashes: Mapping[str, str], read_at: float, *, opened: bool = False
) -> list[Suggestion]:
    """Record that accepted suggestions for ``file`` were undone, where its kernels are again what they were before, and
    return these. ``hashes`` maps the content hashes of the kernels in the file to their targets. A text that was read
    before the acceptance (``read_at``, seconds since the epoch) says nothing about it, and neither does a file that
    was ``opened``, not saved, where git has moved to another commit since.

    Raises:
        MemoryUnavailableError: the memory cannot be read or written.
    """
    undone = []
    for stored in memory.suggestions(file=file, state="accepted"):
        if stored.body.get("base_hash") not in hashes:
            continue
        suggestion = from_plain(Suggestion, stored.body)
        fast = suggestion.fast_hashes
        pair = memory.pair(_pair_of(suggestion))
        back = hashes[suggestion.base_hash] == suggestion.target and not fast & set(hashes)
        if pair is None or not back:
            continue
        accepted_at = datetime.fromisoformat(pair.created).timestamp()
        if accepted_at < read_at and not (opened and _git_moved_since(Path(file), accepted_at)):
            undo(memory, suggestion)
            undone.append(suggestion)
    return undone


def _git_moved_since(file: Path, moment: float) -> bool:
    """Return whether git has moved to another commit since ``moment`` (seconds since the epoch) in the folder of
    ``file``."""
    for folder in file.absolute().parents:
        place = folder / ".git"
        if place.is_file():  # a linked worktree
            pointer = place.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
            place = folder / pointer
        if place.is_dir():
            notes = [place / "HEAD", place / "logs" / "HEAD"]
            return any(note.is_file() and note.stat().st_mtime >= moment for note in notes)
    return False


def undo(memory: Memory, suggestion: Suggestion) -> None:
    """Withdraw the pair of an accepted suggestion, count that against its steps, and offer it again, in one
    transaction. Raises MemoryUnavailableError."""
    identifier = _pair_of(suggestion)
    with memory.transaction():
        pair = memory.pair(identifier)
        items = items_of(memory, suggestion, pair)
        memory.outcomes.mark(
            sorted(items), suggestion.base_hash, suggestion.target, accepted=False, undone=True
        )
        memory.forget(identifier)
        memory.set_suggestion_state(suggestion.id, "offered")


def _pair_of(suggestion: Suggestion) -> str:
    return pair_id(
        suggestion.dialect,
        suggestion.target,
        kernel=suggestion.kernel,
        slow_text=suggestion.base_text,
        fast_text=suggestion.text,
    )
