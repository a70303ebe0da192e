"""What it means for the memory that a person accepted a suggestion, or did not want it."""

from __future__ import annotations

from typing import cast

from accelopt_agent.fingerprint import rewrite_fingerprint
from accelopt_agent.suggestion import Suggestion
from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair, Rejection
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Dialect


def accept(memory: Memory, suggestion: Suggestion) -> str:
    """Remember the suggestion as a slow-fast pair and return the pair's id. Accepting twice keeps one pair.

    Raises:
        MemoryUnavailable: nothing was remembered.
        ValueError: one of the suggestion's texts does not hold its kernel.
    """
    pair_id = memory.add_pair(pair_of(suggestion))
    memory.save_suggestion(_plain(suggestion))
    memory.set_suggestion_state(suggestion.id, "accepted")
    return pair_id


def reject(memory: Memory, suggestion: Suggestion, reason: str = "") -> str:
    """Remember that this rewrite of this kernel is not wanted, so that it is not offered again.

    Raises:
        MemoryUnavailable: nothing was remembered.
    """
    rejection = memory.add_rejection(
        Rejection(
            kernel_hash=suggestion.base_hash,
            candidate_id=rewrite_fingerprint(suggestion.base_text, suggestion.text, suggestion.kernel),
            origin=suggestion.origin,
            reason=reason,
            kernel=suggestion.kernel,
            suggestion=suggestion.id,
        )
    )
    memory.save_suggestion(_plain(suggestion))
    memory.set_suggestion_state(suggestion.id, "rejected")
    return rejection


def pair_of(suggestion: Suggestion) -> Pair:
    """The slow-fast pair that an accepted suggestion is."""
    fast = {k.name: k.content_hash for k in find_kernels(suggestion.text).kernels}
    if suggestion.kernel not in fast:
        raise ValueError(f"the suggestion {suggestion.id} does not hold the kernel {suggestion.kernel}")
    return Pair(
        kernel=suggestion.kernel,
        dialect=cast(Dialect, suggestion.dialect),
        target=suggestion.target,
        slow_text=suggestion.base_text,
        fast_text=suggestion.text,
        slow_hash=suggestion.base_hash,
        fast_hash=fast[suggestion.kernel],
        origin=suggestion.origin,
        summary=suggestion.summary,
        features=kernel_features(suggestion.base_text, suggestion.kernel, suggestion.bound),
        slow=suggestion.slow,
        fast=suggestion.fast,
        steps=suggestion.steps or (suggestion.origin,),
        host=suggestion.host,
        file=suggestion.file,
        bound=suggestion.bound,
        receipts=(suggestion.gate.receipt,) if suggestion.gate.receipt else (),
    )


def _plain(suggestion: Suggestion) -> dict[str, object]:
    from accelopt_profiling.plain import to_plain

    plain: dict[str, object] = to_plain(suggestion)
    return plain
