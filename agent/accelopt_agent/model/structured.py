"""Extracts a JSON object from an answer, ignoring the text around it."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCED = re.compile(r"(`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*\n(.*?)(?:\n[ \t]*\1|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


class NoJsonObjectError(ValueError):
    """The answer holds no JSON object with what was asked for. One line."""


def read_object(answer: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the first JSON object in ``answer`` that has all of ``required``: the whole of it, a fenced
    block, or wherever braces begin one. A comma too many and line ends inside strings are passed over.

    Raises:
        NoJsonObjectError: there is none.
    """
    broken = False
    for text in _places(answer):
        found = _object(text)
        if found is None:
            broken = broken or text.lstrip().startswith("{")
        elif all(name in found for name in required):
            return found
    if broken:
        raise NoJsonObjectError("the answer's JSON is invalid")
    wanted = f" with {', '.join(required)}" if required else ""
    raise NoJsonObjectError(f"the answer holds no JSON object{wanted}")


def _places(answer: str) -> list[str]:
    places = [answer, *(match[2] for match in _FENCED.finditer(answer))]
    starts = [match.start() for match in re.finditer(r"\{", answer)][:50]
    return places + [answer[start:] for start in starts]


def _object(text: str) -> dict[str, Any] | None:
    decoder = json.JSONDecoder(strict=False)
    stripped = text.strip()
    for attempt in (stripped, _TRAILING_COMMA.sub(r"\1", stripped)):
        try:
            found, _ = decoder.raw_decode(attempt)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return None
