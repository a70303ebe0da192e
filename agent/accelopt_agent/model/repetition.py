"""A model that has lost its way says the same thing again and again until its length limit."""

from __future__ import annotations

#: The end of a text is a repetition when one piece fills at least this much of it, so often in a row.
SPAN = 1200
TIMES = 8

_LONGEST_PERIOD = 600


def repeats_itself(text: str) -> bool:
    """Whether ``text`` ends with one piece of up to 600 characters, repeated to at least 1200 characters and at
    least 8 times. The piece must hold something to read: rows of dashes or spaces are no repetition."""
    for period in range(1, _LONGEST_PERIOD + 1):
        span = max(SPAN, TIMES * period)
        if len(text) < span:
            if period * TIMES > SPAN:
                return False
            continue
        tail = text[-span:]
        if tail[period:] == tail[:-period] and any(c.isalnum() for c in tail[:period]):
            return True
    return False
