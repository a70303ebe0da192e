"""Records a conversation with a team, and plays it again: the answer to each question, with its source."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_agent.simulated.team import Question
from accelopt_profiling.plain import from_plain, to_plain

#: Says something to the ``count``-th time (from 0) that a question is asked.
Answering = Callable[[Question, int], str]


class NotRecordedError(Exception):
    """The conversation has no answer to a question; one line."""


@dataclass(frozen=True)
class Turn:
    """``question`` is the question's key; the ``count``-th time that it was asked, ``answer`` was said."""

    role: str
    kernel: str
    question: str
    count: int
    answer: str


@dataclass
class Conversation:
    """``source`` says in a sentence who answered, so that nobody takes it for a model's words; ``recorded`` is the
    day, ``model`` the name that was asked for."""

    source: str
    recorded: str
    model: str
    turns: list[Turn] = field(default_factory=list)

    def recording(self, answering: Answering) -> Answering:
        """Return ``answering``, of which every turn is kept here."""
        known = {(t.question, t.count) for t in self.turns}

        def answered(question: Question, count: int) -> str:
            answer = answering(question, count)
            if (question.key, count) not in known:
                known.add((question.key, count))
                self.turns.append(Turn(question.role or "", question.kernel, question.key, count, answer))
            return answer

        return answered

    def answer(self, question: Question, count: int) -> str:
        """Return what was said then. Raises NotRecordedError."""
        for turn in self.turns:
            if (turn.question, turn.count) == (question.key, count):
                return turn.answer
        asked = f"{question.role or 'unknown role'} about {question.kernel or 'no kernel'}"
        raise NotRecordedError(
            f"this conversation of {self.recorded} has no answer to the {asked}; record it again"
        )

    def save(self, path: Path) -> None:
        """Write the conversation to a file. Raises OSError when it cannot be written."""
        path.write_text(json.dumps(to_plain(self), indent=1, ensure_ascii=False) + "\n", "utf-8")


def read_conversation(path: Path) -> Conversation:
    """Read a recorded conversation. Raises OSError, or ValueError when the file is no conversation."""
    try:
        return from_plain(Conversation, json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is no recorded conversation: {error}") from error
