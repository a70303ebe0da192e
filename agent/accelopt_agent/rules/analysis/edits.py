"""Edits of source text by byte span; all other bytes stay as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class ByteEdit:
    """Replace the UTF-8 bytes ``start`` to ``end`` (exclusive) by ``text``. ``start == end`` inserts."""

    start: int
    end: int
    text: str


class OverlappingEditsError(ValueError):
    """Two edits of one rewrite touch the same bytes: a bug in the rule that made them."""


def apply_edits(data: bytes, edits: Iterable[ByteEdit], newline: str = "\n") -> bytes:
    """Return ``data`` after all ``edits``; line ends inside inserted text become ``newline``.

    Edits at one place are applied in the order given.

    Raises:
        OverlappingEditsError: two edits replace some of the same bytes.
    """
    pieces: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise OverlappingEditsError(f"two edits replace byte {edit.start}")
        pieces.append(data[at : edit.start])
        pieces.append(edit.text.replace("\n", newline).encode())
        at = edit.end
    pieces.append(data[at:])
    return b"".join(pieces)
