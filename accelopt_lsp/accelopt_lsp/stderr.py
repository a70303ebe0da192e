"""Write remarks to standard error, with control characters replaced."""

from __future__ import annotations

import re
import sys

#: Control characters (tab and line end apart) and the marks that turn the direction of text: a kernel, a
#: model or an imported file could use them to write over what the terminal shows.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Replace what would move the cursor or turn the text by a replacement character."""
    return _CONTROL.sub("\ufffd", text)


def say(text: str) -> None:
    """Write one remark to standard error."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()
