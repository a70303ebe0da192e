"""The first answer of the server comes before the server is imported, and is the one that pygls would give."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from typing import Any

import pytest
from lsprotocol import types as t
from support.editor import CLIENTS, capabilities

from accelopt_lsp.backend.parser import ParserProcess
from accelopt_lsp.backend.process import ProcessBackend
from accelopt_lsp.server.capabilities import initialize_result
from accelopt_lsp.server.first_message import AnsweredWriter, answer_first, encoded, read_first
from accelopt_lsp.server.server import ready_converter
from accelopt_lsp.server.setup import build

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}


class Written:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.messages.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self) -> None:
        pass


class Unstarted(ProcessBackend):
    async def start(self) -> None:
        pass


@pytest.mark.parametrize("name", CLIENTS)
async def test_the_first_answer_is_the_one_of_pygls(name: str) -> None:
    server = build(Unstarted(), ParserProcess())
    written = Written()
    server.protocol.set_writer(written)
    client = t.InitializeParams(capabilities=capabilities(name))
    params = json.loads(json.dumps(ready_converter().unstructure(client)))
    message = json.dumps({**REQUEST, "params": params})
    server.protocol.handle_message(json.loads(message, object_hook=server.protocol.structure_message))
    await asyncio.sleep(0)
    (answer,) = [message for message in written.messages if message.get("id") == 1]
    assert initialize_result(params) == answer["result"]


def test_nothing_heavy_is_imported_before_the_first_answer() -> None:
    code = "import sys, accelopt_lsp.lsp_command, accelopt_lsp.server.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {
        "lsprotocol",
        "pygls",
        "attrs",
        "cattrs",
        "click",
        "asyncio",
        "numpy",
        "accelopt_profiling",
        "accelopt_agent",
    }
    version = "accelopt_profiling"  # the package itself holds nothing but the version
    assert not {name.partition(".")[0] for name in done.stdout.split() if name != version} & heavy


@pytest.mark.parametrize(
    "first",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "shutdown"},
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": []},
        {"jsonrpc": "2.0", "method": "initialize", "params": {"capabilities": {}}},
        {"jsonrpc": "2.0", "id": 1},
    ],
)
def test_what_is_no_initialize_is_left_to_pygls(first: dict[str, Any]) -> None:
    out = io.BytesIO()
    assert answer_first(encoded(first), out) is None
    assert out.getvalue() == b""


@pytest.mark.parametrize(
    "data", [b"", b"\r\n", b"Content-Length: x\r\n\r\n", b"Content-Length: 9\r\n", b"no\r\n\r\n"]
)
def test_what_is_no_message_is_read_and_answered_by_nobody(data: bytes) -> None:
    assert read_first(io.BytesIO(data)) == data
    assert answer_first(data, io.BytesIO()) is None


def test_the_first_message_only_is_read() -> None:
    first, second = encoded(REQUEST), encoded({**REQUEST, "id": 2})
    stream = io.BytesIO(first + second)
    assert read_first(stream) == first
    assert stream.read() == second


def test_the_second_answer_to_the_first_request_is_left_out() -> None:
    written = Written()
    writer = AnsweredWriter(written, 1)
    for message in (
        {"method": "window/logMessage"},
        {"id": 1, "method": "mine"},
        {"id": 1, "result": {}},
        {"id": 1},
    ):
        writer.write(encoded(message))
    assert written.messages == [{"method": "window/logMessage"}, {"id": 1, "method": "mine"}, {"id": 1}]


def test_an_error_after_the_first_answer_is_shown() -> None:
    written = Written()
    AnsweredWriter(written, 1).write(encoded({"id": 1, "error": {"code": -32602, "message": "no such kind"}}))
    (shown,) = written.messages
    assert shown["method"] == "window/showMessage"
    assert "no such kind" in shown["params"]["message"]


def test_the_backend_starts_without_what_it_seldom_needs() -> None:
    code = "import sys, accelopt_lsp.backend.process_main, accelopt_lsp.backend.local; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seldom = {"sqlite_utils", "numpy", "libcst", "lsprotocol", "pygls", "attrs"}
    assert not {name.partition(".")[0] for name in done.stdout.split()} & seldom


def test_the_server_starts_without_what_it_seldom_needs() -> None:
    code = "import sys, accelopt_lsp.server.setup, accelopt_lsp.backend.process; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seldom = {"libcst", "sqlite3", "sqlite_utils", "numpy", "accelopt_memory"}
    assert not {name.partition(".")[0] for name in done.stdout.split()} & seldom
