"""Prints the output of commands: one JSON object or a text on standard output, all else on standard error."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from accelopt_lsp.stderr import printable

if TYPE_CHECKING:
    from rich.console import Console

#: The line that opens a block of code.
_FENCE = re.compile(r"(`{3,})[\w-]*\s*$")

#: Columns of a table that no terminal shows, and of prose.
_UNREAD_WIDTH, _PROSE_WIDTH = 1000, 100


#: The version of the shapes that ``--json`` prints; a name that goes or changes its meaning makes a new one.
SCHEMA = 1


def print_json(data: Any) -> None:
    """Print the command's one JSON object, with the version of its shape.

    Dataclasses become objects, NaN and infinities null. What standard output cannot encode, such as the bytes of a
    file name that is no text, is escaped.
    """
    from accelopt_profiling.plain import to_plain

    plain = {"schema": SCHEMA, **to_plain(data)}
    text = json.dumps(plain, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(plain, indent=2)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def show_whatever_comes() -> None:
    """Let standard output show what its encoding lacks as an escape, as standard error does, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def out() -> Console:
    """Return the console for answers. Text given to it is shown as it is: markup in kernels or memory is no
    markup. Where no terminal reads, tables are as wide as they have to be."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNREAD_WIDTH
    return console


def print_markdown(text: str) -> None:
    """Print prose for people, at the terminal's width; blocks of code as they are, with whole lines that can be
    copied."""
    from rich.markdown import Markdown

    console = out()
    width = min(console.width, _PROSE_WIDTH)
    for prose, code in _blocks(printable(text)):
        if prose.strip():
            console.print(Markdown(prose, hyperlinks=False), width=width, soft_wrap=False)
        if code:
            console.print(f"\n{code}", end="")


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a Markdown text: prose, and the block of code after it without its fence."""
    prose: list[str] = []
    code: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        match = _FENCE.match(line)
        if not fence and match:
            fence = match[1]
        elif fence and line.strip() == fence:
            yield "".join(prose), "".join(code)
            prose, code, fence = [], [], ""
        else:
            (code if fence else prose).append(line)
    yield "".join(prose), "".join(code)


def err() -> Console:
    """Return the console for progress and remarks."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
