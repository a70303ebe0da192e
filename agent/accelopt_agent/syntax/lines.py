"""Splits text into lines as editors and Python's tokenizer do: only LF, CRLF and CR end a line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from accelopt_profiling.source_text import source_lines

_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Lines:
    """The lines of ``text``, without their ends. The last line has the end ``""``.

    ``"\\n".join`` semantics: a text with a final newline has an empty last line.
    """

    text: str

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))

    @cached_property
    def ends(self) -> tuple[str, ...]:
        return (*_END.findall(self.text), "")

    @property
    def newline(self) -> str:
        """The line end the text uses most. LF for a text of one line."""
        line_ends = [end for end in self.ends if end]
        return max(("\n", "\r\n", "\r"), key=line_ends.count) if line_ends else "\n"


@lru_cache(maxsize=4)  # an editor asks many times about the same text
def split_lines(text: str) -> Lines:
    """Return ``text`` as lines; joining texts and ends gives it back exactly."""
    return Lines(text)


def share_kept(before: str, after: str, text: str) -> float | None:
    """Return the share of the lines that ``after`` adds to ``before`` which stand in ``text``, whatever their indent;
    None where it adds none."""
    old, new, there = ({line.strip() for line in source_lines(t)} for t in (before, after, text))
    added = new - old - {""}
    return len(added & there) / len(added) if added else None
