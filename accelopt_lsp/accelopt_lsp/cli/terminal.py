"""What a command prints: one JSON object or a text for people on standard output, all the rest on standard
error."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

#: Control characters (tab and line end apart) and the marks that turn the direction of text: a kernel, a
#: model or an imported file could use them to write over what the terminal shows.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """``text`` as a terminal may show it: what would move the cursor or turn the text is shown as "�"."""
    return _CONTROL.sub("\ufffd", text)


def print_json(data: Any) -> None:
    """The command's one JSON object. Dataclasses become objects, NaN and infinities null."""
    from accelopt_profiling.plain import to_plain

    sys.stdout.write(json.dumps(to_plain(data), ensure_ascii=False, indent=2) + "\n")
    sys.stdout.flush()


def out() -> Console:
    """The console for answers. Text given to it is shown as it is: markup in kernels or memory is no
    markup."""
    from rich.console import Console

    return Console(highlight=False, markup=False, soft_wrap=True)


def err() -> Console:
    """The console for progress and remarks."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def say(text: str) -> None:
    """A remark on standard error."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()
