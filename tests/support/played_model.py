"""A real local HTTP server that plays a language model: it gives the replies it was told to, in their order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """``body`` None closes the connection without a word; ``hang`` sends nothing until the server stops.

    ``events`` are sent as a stream where the request asks for one: ``cut`` then closes it before its end, ``hang``
    keeps it open and silent after the last event, ``endless`` sends the last event until the reader goes away.
    """

    status: int = 200
    body: bytes | None = b""
    hang: bool = False
    cut: bool = False  # announces more than it sends
    events: tuple[str, ...] = ()
    endless: bool = False
    headers: tuple[tuple[str, str], ...] = ()


def says(
    text: str | None,
    finish: str | None = "stop",
    tokens: tuple[int, int] | None = (100, 20),
    cached: int = 0,
    pieces: int = 3,
    streams: bool = True,
    **message: Any,
) -> Reply:
    """A chat completion with this text, in so many ``pieces`` where the request asks for a stream."""
    usage: dict[str, Any] | None = None
    if tokens is not None:
        details = {"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
        usage = {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
            **details,
        }
    whole = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "finish_reason": finish, "message": whole}
    data = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "toy",
        "choices": [choice],
        "usage": usage,
    }
    size = -(-len(text) // pieces) if text else 1
    deltas: list[dict[str, Any]] = [{"role": "assistant", **message}]
    deltas += [{"content": text[at : at + size]} for at in range(0, len(text), size)] if text else []
    events = [chunk(delta) for delta in deltas]
    events += [chunk({}, finish)] if finish else []
    events += [chunk(None, usage=usage)] if usage else []
    return Reply(200, json.dumps(data).encode(), events=(*events, "[DONE]") if streams else ())


def chunk(delta: dict[str, Any] | None, finish: str | None = None, usage: Any = None) -> str:
    """One event of a stream; without a ``delta`` it has no choice."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    data = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "toy", "choices": choices}
    return json.dumps({**data, "usage": usage})


def error(status: int, message: str = "no", **headers: str) -> Reply:
    """A refusal of the server; ``headers`` are named with underscores."""
    body = json.dumps({"error": {"message": message, "type": "toy"}}).encode()
    return Reply(status, body, headers=tuple((k.replace("_", "-"), v) for k, v in headers.items()))


#: How long an answer that does come is waited for, in seconds: on a busy machine anything may take long.
PATIENCE = 60.0


@dataclass
class PlayedModel:
    """``asked`` holds the requests that came, ``headers`` theirs; each releases ``each``. ``left`` is set when a reader
    of an endless or silent stream went away."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    came: threading.Event = field(default_factory=threading.Event)
    each: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


@contextmanager
def playing(replies: Sequence[Reply], models: Sequence[str] = ()) -> Iterator[PlayedModel]:
    """A server on the loopback that gives ``replies`` one after another, the last one again and again, and says
    that it has ``models``."""
    played, stop, rest = PlayedModel(), threading.Event(), list(replies)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(
                Reply(200, json.dumps({"object": "list", "data": [{"id": m} for m in models]}).encode())
            )

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            question = json.loads(self.rfile.read(length))
            played.asked.append(question)
            played.headers.append({k.lower(): v for k, v in self.headers.items()})
            played.came.set()
            played.each.release()
            reply = rest.pop(0) if len(rest) > 1 else rest[0]
            if reply.events and question.get("stream"):
                self._stream(reply)
            elif reply.hang:
                stop.wait()
            elif reply.body is None:
                self.close_connection = True
            else:
                self._send(reply)

        def _send(self, reply: Reply) -> None:
            assert reply.body is not None
            self.send_response(reply.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply.body) + (1000 if reply.cut else 0)))
            for name, value in reply.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)
            self.close_connection = reply.cut

        def _stream(self, reply: Reply) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            try:  # who asked may go away at any point
                self.end_headers()
                for event in reply.events:
                    self._event(event)
                while reply.endless and not stop.is_set():
                    self._event(reply.events[-1])
                if reply.hang:
                    while not stop.is_set() and self.connection.recv(1):
                        pass
                    played.left.set()
            except OSError:
                played.left.set()
            self.close_connection = reply.cut or reply.hang or reply.endless
            if not self.close_connection:
                self.wfile.write(b"0\r\n\r\n")

        def _event(self, data: str) -> None:
            sent = f"data: {data}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(sent), sent))

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    played.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield played
    finally:
        stop.set()
        server.shutdown()
        server.server_close()
