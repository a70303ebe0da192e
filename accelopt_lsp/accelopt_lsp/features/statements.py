"""Where the statements of a text end: what belongs to one is shown behind its last line, never inside of a call."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from functools import lru_cache


def statement_end(lines: Sequence[str], line: int, first: int, last: int) -> int:
    """Return the last line of the statement, or of the head of a block, that the 1-based ``line`` is part of.

    ``first``..``last`` are the lines of the function around it. A text that cannot be read ends where it is asked for.
    """
    text = "\n".join(body.rstrip("\r\n") for body in lines[first - 1 : last])
    ends = _ends(text)
    return first + ends[line - first] if 0 <= line - first < len(ends) else line


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
