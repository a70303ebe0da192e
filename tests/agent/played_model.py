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
    """``body`` None closes the connection without a word; ``hang`` sends nothing until the server stops."""

    status: int = 200
    body: bytes | None = b""
    hang: bool = False
    cut: bool = False  # announces more than it sends


def says(
    text: str | None, finish: str = "stop", tokens: tuple[int, int] = (100, 20), **message: Any
) -> Reply:
    """A chat completion with this text."""
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text, **message},
    }
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    data = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "toy",
        "choices": [choice],
        "usage": usage,
    }
    return Reply(200, json.dumps(data).encode())


def error(status: int) -> Reply:
    return Reply(status, json.dumps({"error": {"message": "no", "type": "toy"}}).encode())


@dataclass
class PlayedModel:
    """``asked`` holds the requests that came, ``headers`` theirs."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def playing(replies: Sequence[Reply]) -> Iterator[PlayedModel]:
    """A server on the loopback that gives ``replies`` one after another, the last one again and again."""
    played, stop, left = PlayedModel(), threading.Event(), list(replies)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            played.asked.append(json.loads(self.rfile.read(length)))
            played.headers.append({k.lower(): v for k, v in self.headers.items()})
            reply = left.pop(0) if len(left) > 1 else left[0]
            if reply.hang:
                stop.wait()
                return
            if reply.body is None:
                self.close_connection = True
                return
            self.send_response(reply.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply.body) + (1000 if reply.cut else 0)))
            self.end_headers()
            self.wfile.write(reply.body)
            self.close_connection = reply.cut

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
