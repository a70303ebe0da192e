"""Carries the edit of a pair over to another kernel: a three-way merge over kernel, helpers, launch and module.

The base is the slow side as the other kernel would call it, theirs is the fast side, ours the other kernel. The result
follows the lines of the fast side; a line that the edit left alone, changed or moved is taken from the other kernel,
and what only that has stays where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from accelopt_agent.syntax.token_lines import code_lines, read_tokens
from accelopt_agent.transfer.kernel_match import KernelMatch, match_kernels
from accelopt_agent.transfer.line_merge import MergedBlock, merge_block
from accelopt_agent.transfer.module_merge import merge_file
from accelopt_agent.transfer.pair_edit import PairEdit, read_edit
from accelopt_agent.transfer.soundness import is_sound

#: An edit fits where at least this share of the lines that it changes stand in the other kernel.
LEAST_FIT = 0.6


@dataclass(frozen=True)
class TransferredEdit:
    """``text`` is the other file after the edit.

    ``fit`` is the share (0..1) of the lines which the edit changes that were there; ``whole`` tells that all of its
    parts were merged.
    """

    text: str
    fit: float
    whole: bool


def transfer(
    slow_text: str, fast_text: str, pair_kernel: str, text: str, kernel: str
) -> TransferredEdit | None:
    """Apply the edit of a pair to ``kernel`` in ``text``: all of it, or else those parts that fit wholly; None where
    none fits.

    The result is not known to be right: the gate decides that. It parses, holds the kernel, and reads no name that
    nothing has bound by then.
    """
    try:
        edit, target = read_edit(slow_text, fast_text), read_tokens(text)
        touched = {b.name for b in edit.blocks if any(e.hunk for e in b.lines)}
        match = match_kernels(edit.slow, pair_kernel, target, kernel, touched)
    except SyntaxError:
        return None
    if match is None or not edit.hunks:
        return None
    for hunks in _attempts(edit, match):
        merged = _merged(edit, match, hunks)
        fit = sum(b.placed for b in merged) / max(1e-9, sum(b.wanted for b in merged))
        if fit < LEAST_FIT or not any(b.changed for b in merged):
            continue
        result = merge_file(edit, match, target, merged, hunks)
        if result is not None and result != text and is_sound(result, text, kernel):
            return TransferredEdit(result, min(1.0, fit), len(hunks) == len(edit.hunks))
    return None


def reproduces(slow_text: str, fast_text: str, kernel: str) -> bool:
    """Return whether a pair's own edit makes its fast side of its slow side, token for token."""
    own = transfer(slow_text, fast_text, kernel, slow_text, kernel)
    if own is None:
        return False
    result, fast = (code_lines(read_tokens(text).lines) for text in (own.text, fast_text))
    return [(line.depth, line.key) for line in result] == [(line.depth, line.key) for line in fast]


def _attempts(edit: PairEdit, match: KernelMatch) -> Iterator[frozenset[int]]:
    """Yield all hunks, then those whose every line stands in the other kernel."""
    whole = frozenset(edit.hunks)
    yield whole
    fitting = frozenset(hunk for hunk in edit.hunks if _fits(_merged(edit, match, frozenset({hunk}))))
    if fitting and fitting != whole:
        yield fitting
    if len(fitting) > 1:
        for hunk in sorted(fitting):
            yield frozenset({hunk})


def _fits(merged: list[MergedBlock]) -> bool:
    return all(b.placed >= b.wanted for b in merged)


def _merged(edit: PairEdit, match: KernelMatch, hunks: frozenset[int]) -> list[MergedBlock]:
    return [merge_block(block, edit, match, hunks) for block in edit.blocks]
