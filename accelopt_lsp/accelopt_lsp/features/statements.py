"""Where the statements of a text end: what belongs to one is shown behind its last line, never inside of a call."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from functools import lru_cache


def statement_ends(lines: Sequence[str], first: int, last: int) -> list[int]:
    """Return, for each 1-based line of a function, the last line of the statement or block's head that it is part of.

    The function has the lines ``first``..``last``. A text that cannot be read ends where it is asked for.
    """
    return [first + end for end in _ends("\n".join(body.rstrip("\r\n") for body in lines[first - 1 : last]))]


@lru_cache(maxsize=512)
def _ends(text: str) -> tuple[int, ...]:
    """Return, for each line counted from 0, the line on which its logical line ends."""
    ends = list(range(text.count("\n") + 1))
    begin: int | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                end = token.start[0] - 1
                for at in range(end if begin is None else begin, end + 1):
                    ends[at] = end
                begin = None
            elif begin is None and token.type not in _BETWEEN:
                begin = token.start[0] - 1
    except (tokenize.TokenError, SyntaxError):
        pass  # the lines from there on end where they are
    return tuple(ends)


#: What stands between statements.
_BETWEEN = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
