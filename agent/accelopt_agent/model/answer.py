"""Reads a server's answer piece by piece. It is untrusted: every part may be missing or of a wrong type."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """``text`` as the model wrote it, without its reasoning.

    Token counts are the server's own; ``estimated`` where it gives none: four characters then count as one token.
    ``tokens_cached`` of ``tokens_in`` came from the server's cache.
    """

    text: str
    tokens_in: int
    tokens_out: int
    tokens_cached: int = 0
    estimated: bool = False


class UnusableAnswerError(Exception):
    """The answer cannot be used, whatever follows. The message continues the sentence "The model M at A"."""


#: A server that goes on beyond what was asked for is cut off at this many characters per token.
MOST_CHARACTERS_PER_TOKEN = 12
_THOUGHT = re.compile(r"\A\s*<think(ing)?>.*?(</think(ing)?>|\Z)", re.DOTALL)


def estimated_tokens(characters: int) -> int:
    """Return how many tokens so many characters are taken to have: one for four of them."""
    return -(-characters // 4)


@dataclass
class AnswerReader:
    """Collects an answer as it arrives. ``prompt_characters`` is the size of the request."""

    prompt_characters: int
    answer_tokens: int
    text: str = ""
    thought: int = 0  # characters that came as reasoning
    reason: str | None = None
    refused: bool = False
    usage: Any = None
    pieces: int = 0
    _checked: int = field(default=0, repr=False)

    def take(self, event: Any) -> None:
        """Add one chunk of a stream, or a whole completion.

        Raises:
            UnusableAnswerError: the model repeats itself, or writes far more than was allowed.
        """
        self.pieces += 1
        self.usage = _part(event, "usage") or self.usage
        choices = _part(event, "choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = _part(choice, "delta") or _part(choice, "message")
        if isinstance(text := _part(message, "content"), str):
            self.text += text
        for name in ("reasoning_content", "reasoning"):
            if isinstance(text := _part(message, name), str):
                self.thought += len(text)
        self.refused = self.refused or bool(_part(message, "refusal"))
        if isinstance(reason := _part(choice, "finish_reason"), str):
            self.reason = reason
        if len(self.text) + self.thought > self.answer_tokens * MOST_CHARACTERS_PER_TOKEN:
            raise UnusableAnswerError("writes far more than it was asked for and was stopped")
        if len(self.text) - self._checked >= 256:
            self._checked = len(self.text)
            if repeats_itself(self.text):
                raise UnusableAnswerError("repeats itself without end and was stopped")

    def finish(self, *, streamed: bool) -> Answer:
        """Return the complete answer.

        Raises:
            UnusableAnswerError: it is refused, empty, cut off or not finished.
        """
        text = _THOUGHT.sub("", self.text)
        if self.refused or self.reason == "content_filter":
            raise UnusableAnswerError("refuses to answer")
        if self.reason == "length":
            raise UnusableAnswerError("was cut off at the length limit")
        if repeats_itself(text):
            raise UnusableAnswerError("repeats itself without end")
        if streamed and self.reason is None and self.text:
            raise UnusableAnswerError("stopped in the middle of its answer")
        if not text.strip():
            raise UnusableAnswerError("gave an empty answer")
        return Answer(text, *self.tokens)

    @property
    def tokens(self) -> tuple[int, int, int, bool]:
        """Read, written, read from the cache, and whether these are estimated."""
        read, written = _count(self.usage, "prompt_tokens"), _count(self.usage, "completion_tokens")
        cached = _count(_part(self.usage, "prompt_tokens_details"), "cached_tokens")
        if read or written:
            return read, written, min(cached, read), False
        if not self.pieces:
            return 0, 0, 0, False
        written = len(self.text) + self.thought
        return estimated_tokens(self.prompt_characters), estimated_tokens(written), 0, True


def parse_completion(data: bytes) -> Any:
    """Parse the JSON of an answer that was not streamed.

    Raises:
        ValueError: it is not JSON.
    """
    return json.loads(data)


def _part(of: Any, name: str) -> Any:
    return of.get(name) if isinstance(of, dict) else getattr(of, name, None)


def _count(of: Any, name: str) -> int:
    value = _part(of, name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


#: The end of a text is a repetition when one piece fills at least this much of it, so often in a row.
SPAN = 1200
TIMES = 8

_LONGEST_PERIOD = 600


def repeats_itself(text: str) -> bool:
    """Return whether ``text`` ends with one piece of up to 600 characters, repeated to at least 1200 characters and at
    least 8 times. The piece must hold a letter or digit: rows of dashes or spaces do not count."""
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
