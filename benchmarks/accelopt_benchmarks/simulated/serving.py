"""Serves the simulated team, or a recorded conversation with a team, behind an OpenAI-compatible address on the
loopback.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from accelopt_benchmarks.simulated.team import Question
from accelopt_profiling.plain import from_plain, to_plain

#: Tokens are counted as so many characters each.
CHARACTERS_PER_TOKEN = 4

#: A longer question is none of ours.
_MOST_BYTES = 8 << 20


@contextmanager
def serving(answering: Answering, model: str) -> Iterator[str]:
    """Yield the address of a server that has ``model``, for as long as the context is open."""
    counts: Counter[str] = Counter()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": [{"id": model, "object": "model"}]})

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            try:
                request = json.loads(self.rfile.read(length)) if length <= _MOST_BYTES else {}
                messages = {m["role"]: m["content"] for m in request["messages"]}
                question = Question(messages["system"], messages["user"])
            except (ValueError, KeyError, TypeError):
                self._send(400, {"error": {"message": "this is no question of ours"}})
                return
            with lock:
                count = counts[question.key]
                counts[question.key] += 1
                try:
                    answer = answering(question, count)
                except NotRecordedError as error:
                    self._send(400, {"error": {"message": str(error)}})
                    return
            usage = _usage(question, answer)
            if request.get("stream"):
                self._stream(answer, usage)
            else:
                self._send(200, _whole(model, answer, usage))

        def _send(self, status: int, data: dict[str, Any]) -> None:
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, answer: str, usage: dict[str, int]) -> None:
            events = [_piece(model, {"role": "assistant", "content": answer}, None),
                      _piece(model, {}, "stop"), {**_head(model), "choices": [], "usage": usage}]  # fmt: skip
            body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _usage(question: Question, answer: str) -> dict[str, int]:
    read = (len(question.system) + len(question.user)) // CHARACTERS_PER_TOKEN
    written = len(answer) // CHARACTERS_PER_TOKEN
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _head(model: str) -> dict[str, Any]:
    return {"id": "simulated", "object": "chat.completion.chunk", "created": 0, "model": model}


def _piece(model: str, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {**_head(model), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _whole(model: str, answer: str, usage: dict[str, int]) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**_head(model), "object": "chat.completion", "choices": [choice], "usage": usage}


#: Says something to the ``count``-th time (from 0) that a question is asked.
Answering = Callable[[Question, int], str]


class NotRecordedError(Exception):
    """The conversation has no answer to a question; one line."""


@dataclass(frozen=True)
class Turn:
    """``question`` is the question's key. The ``count``-th time that it was asked, ``answer`` was said."""

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
        keys = {(t.question, t.count) for t in self.turns}

        def answered(question: Question, count: int) -> str:
            answer = answering(question, count)
            if (question.key, count) not in keys:
                keys.add((question.key, count))
                self.turns.append(Turn(question.role or "", question.kernel, question.key, count, answer))
            return answer

        return answered

    def answer(self, question: Question, count: int) -> str:
        """Return what was said then. Raises NotRecordedError."""
        for turn in self.turns:
            if (turn.question, turn.count) == (question.key, count):
                return turn.answer
        subject = f"{question.role or 'unknown role'} about {question.kernel or 'no kernel'}"
        raise NotRecordedError(
            f"this conversation of {self.recorded} has no answer to the {subject}; record it again"
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
