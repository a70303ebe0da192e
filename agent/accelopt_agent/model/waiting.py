"""How long to wait before a server that is busy is asked again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def asked_pause(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds that ``Retry-After`` asks for, as seconds or as a date (RFC 9110, 10.2.3); None without it."""
    said = headers.get("retry-after", "").strip()
    if not said:
        return None
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(said).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, at - (time.time() if now is None else now))


def pause(attempt: int, backoff_seconds: float, asked: float | None) -> float:
    """Seconds before the try after the ``attempt``-th (from 1): at least what the server asks for, and twice as
    long each time."""
    own: float = backoff_seconds * 2 ** (attempt - 1)
    return own if asked is None else max(own, asked)
