"""``accelopt lsp`` and ``accelopt-lsp`` are the server: nothing but the protocol on standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest


def frame(message: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return f"Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize("call", ["lsp_main()", "main()"])
def test_the_server_starts_answers_and_ends(call: str) -> None:
    words = ["accelopt-lsp", "--stdio"] if call == "lsp_main()" else ["accelopt", "lsp"]
    code = f"import sys\nsys.argv = {words!r}\nfrom accelopt_lsp.cli.main import lsp_main, main\n{call}"
    messages = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    ]
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b"".join(map(frame, messages)),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = {}
    rest = done.stdout
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = int(dict(line.split(b": ") for line in head.split(b"\r\n"))[b"Content-Length"])
        answer = json.loads(rest[:length])
        answers[answer.get("id")] = answer
        rest = rest[length:]
    assert answers[1]["result"]["serverInfo"]["name"]
    assert answers[2]["result"] is None
