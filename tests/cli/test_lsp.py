"""``accelopt lsp`` and ``accelopt-lsp`` are the server: nothing but the protocol on standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import IO, Any

import pytest


def send(stream: IO[bytes], message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    stream.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    stream.flush()


def answer(stream: IO[bytes], number: int | str) -> Any:
    """The answer to request ``number``; anything on the stream that is no message is an error."""
    while True:
        length = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b": ")
            assert name in (b"Content-Length", b"Content-Type"), line
            length = int(value) if name == b"Content-Length" else length
        assert length, "the server ended"
        message = json.loads(stream.read(length))
        if message.get("id") == number and "method" not in message:
            return message


@pytest.mark.parametrize("call", ["lsp_main()", "main()"])
def test_the_server_starts_answers_and_ends(call: str) -> None:
    words = ["accelopt-lsp", "--stdio"] if call == "lsp_main()" else ["accelopt", "lsp"]
    code = f"import sys\nsys.argv = {words!r}\nfrom accelopt_lsp.cli.main import lsp_main, main\n{call}"
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    with server, server.stdin, server.stdout:
        params = {"processId": None, "rootUri": None, "capabilities": {}}
        send(server.stdin, {"id": 1, "method": "initialize", "params": params})
        assert answer(server.stdout, 1)["result"]["serverInfo"]["name"]
        send(server.stdin, {"method": "initialized", "params": {}})
        send(server.stdin, {"id": 2, "method": "shutdown"})
        assert answer(server.stdout, 2)["result"] is None
        send(server.stdin, {"method": "exit"})
        assert server.wait(timeout=120) == 0


@pytest.mark.slow
def test_a_request_with_invalid_numbers_gets_an_answer() -> None:
    """An editor would wait for it for ever."""
    code = "from accelopt_lsp.cli.main import lsp_main\nlsp_main()"
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    with server, server.stdin, server.stdout:
        params = {"processId": None, "rootUri": None, "capabilities": {}}
        send(server.stdin, {"id": 1, "method": "initialize", "params": params})
        answer(server.stdout, 1)
        send(server.stdin, {"method": "initialized", "params": {}})
        for number, line in enumerate([-1, float("nan"), float("inf"), 10**30, None, "x", []], 2):
            at = {"line": line, "character": 0}
            params = {"textDocument": {"uri": "file:///k.py"}, "range": {"start": at, "end": at}}
            send(server.stdin, {"id": number, "method": "textDocument/inlayHint", "params": params})
            assert answer(server.stdout, number)["error"]["code"] in (-32602, -32603)
        send(server.stdin, {"id": "last", "method": "shutdown"})
        assert answer(server.stdout, "last")["result"] is None
        send(server.stdin, {"method": "exit"})
        assert server.wait(timeout=120) == 0
