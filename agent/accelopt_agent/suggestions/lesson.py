"""Keeps what the summarizer said of a suggestion.

It stands in the run and, once the suggestion is accepted, with its pair.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_memory.memory import Memory
from accelopt_memory.records import RunEvent, pair_id
from accelopt_profiling.source_text import source_lines

#: The kind of event under which a run keeps what the summarizer said.
EXPLAINED = "explained"
#: A lesson is cut to so many characters.
LESSON_CHARACTERS = 600

_WORD, _CALLED = re.compile(r"[^\W\d_]{3,}|\d{2,}"), re.compile(r"\.(\w+)\(")
_KEYWORDS = frozenset(name.lower() for name in keyword.kwlist)


def keep_explanation(memory: Memory, suggestion: Suggestion, data: Mapping[str, Any], key: str) -> None:
    """Store the words of the summarizer (``data["text"]``) and what they cost.

    A pair made of the suggestion learns them. Raises MemoryUnavailableError.
    """
    with memory.transaction():
        if memory.run_log.run(suggestion.run) is not None:
            memory.run_log.add_event(suggestion.run, EXPLAINED, dict(data), key)
        pair = pair_id(
            suggestion.dialect,
            suggestion.target,
            kernel=suggestion.kernel,
            slow_text=suggestion.base_text,
            fast_text=suggestion.text,
        )
        if lesson := _lesson(suggestion, str(data.get("text", ""))):
            memory.set_lesson(pair, lesson)


def kept_explanation(memory: Memory, suggestion: Suggestion, key: str) -> RunEvent | None:
    """Return the event that answered the question ``key`` about the suggestion.

    Raises MemoryUnavailableError.
    """
    return next((e for e in _explanations(memory, suggestion) if e.key == key), None)


def lesson_of(memory: Memory, suggestion: Suggestion) -> str:
    """Return what the summarizer said last about the suggestion, as ``lesson_line`` does; "" where it was not asked.

    Raises MemoryUnavailableError.
    """
    answers = [
        str(event.data.get("text", ""))
        for event in _explanations(memory, suggestion)
        if event.data.get("suggestion") == suggestion.id
    ]
    return _lesson(suggestion, answers[-1]) if answers else ""


def _explanations(memory: Memory, suggestion: Suggestion) -> list[RunEvent]:
    return [e for e in memory.run_log.events(suggestion.run) if e.kind == EXPLAINED]


def _lesson(suggestion: Suggestion, text: str) -> str:
    causes = [*(move.name for move in suggestion.moved), suggestion.bound or "", suggestion.fast_bound or ""]
    return lesson_line(text, suggestion.base_text, suggestion.text, causes)


def lesson_line(text: str, slow: str, fast: str, causes: Iterable[str]) -> str:
    """Return what was said of a change as one line of at most ``LESSON_CHARACTERS``.

    "" where it names nothing of the change: no name or number of the lines that differ, no function that either side
    calls, and no word of the ``causes``, the counters that moved and what bounds the sides.
    """
    difference = [line.partition("#")[0] for line in set(source_lines(slow)) ^ set(source_lines(fast))]
    words = _words(" ".join([*difference, *_CALLED.findall(slow + fast), *causes]))
    line = " ".join(text.split())
    if not words & _words(line):
        return ""
    return line if len(line) <= LESSON_CHARACTERS else line[: LESSON_CHARACTERS - 3].rstrip() + "..."


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _WORD.findall(text.lower())} - _KEYWORDS
