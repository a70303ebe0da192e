"""The first answer of the server comes before the server is imported, and is the one that pygls would give."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as t
from pygls.exceptions import JsonRpcInternalError
from support.editor import CLIENTS, capabilities
from support.waiting import until

from accelopt_lsp.server.first_message import answer_first, encoded, initialize_result, read_first
from accelopt_lsp.server.server import AccelOptServer, message_converter
from accelopt_lsp.server.setup import build
from accelopt_lsp.service.parser import ParserProcess
from accelopt_lsp.service.process import ProcessService
from accelopt_lsp.service.protocol import FileRequest, StoredSearches
from accelopt_lsp.settings.load import load_settings
from accelopt_lsp.settings.trust import Workspace
from accelopt_memory.connection import Connection
from accelopt_memory.profile_cache import ProfileCache
from accelopt_profiling.measurement import FileMeasurement, KernelMeasurement, Latency
from accelopt_profiling.quantity import Known

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}


class Written:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.messages.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self) -> None:
        pass


class Unstarted(ProcessService):
    async def start(self) -> None:
        pass


def receive(server: AccelOptServer, *messages: dict[str, Any]) -> None:
    for message in messages:
        text = json.dumps({"jsonrpc": "2.0", **message})
        server.protocol.handle_message(json.loads(text, object_hook=server.protocol.structure_message))


@pytest.mark.parametrize("name", CLIENTS)
async def test_the_first_answer_is_the_one_of_pygls(name: str) -> None:
    server = build(lambda surface: Unstarted(), ParserProcess())
    written = Written()
    server.protocol.set_writer(written)
    client = t.InitializeParams(capabilities=capabilities(name))
    params = json.loads(json.dumps(message_converter().unstructure(client)))
    receive(server, {**REQUEST, "params": params})
    await asyncio.sleep(0)
    (answer,) = [message for message in written.messages if message.get("id") == 1]
    assert initialize_result(params) == answer["result"]


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


def served(*messages: dict[str, Any], answered: int | str | None) -> list[dict[str, Any]]:
    """Return what a server writes that ``first_message`` has answered ``answered`` for."""
    server, written = build(lambda surface: Unstarted(), ParserProcess()), Written()
    server.protocol.answered = answered
    server.protocol.set_writer(written)
    for message in messages:
        with contextlib.suppress(JsonRpcInternalError):  # which pygls' reader logs
            receive(server, message)
    return written.messages


async def test_the_second_answer_to_the_first_request_is_left_out() -> None:
    later = {
        "jsonrpc": "2.0",
        "method": "textDocument/codeLens",
        "params": {"textDocument": {"uri": "file:///k"}},
    }
    assert served(REQUEST, {**later, "id": 2}, {**later, "id": 1}, answered=1) == [
        {"jsonrpc": "2.0", "id": number, "result": []} for number in (2, 1)
    ]
    (first,) = served(REQUEST, answered=None)
    assert first["id"] == 1


async def test_an_error_after_the_first_answer_is_shown() -> None:
    (message,) = served({**REQUEST, "params": {"capabilities": 3}}, answered=1)
    assert message["method"] == "window/showMessage"
    assert "initialize" in message["params"]["message"]


KERNEL = """
import neuronxcc.nki as nki


@nki.jit
def double(x):
    return x
"""


class Silent(Unstarted):
    """A service that never answers."""

    async def stored_searches(self, file: FileRequest, saved: bool = False) -> StoredSearches:
        return await asyncio.get_running_loop().create_future()

    async def profile(self, file: FileRequest) -> AsyncGenerator[FileMeasurement, None]:
        yield await asyncio.get_running_loop().create_future()


async def test_the_first_lens_of_a_profiled_file_waits_for_no_backend(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    kernel, parser = tmp_path / "double.py", ParserProcess()
    kernel.write_text(KERNEL)
    file = await parser.examine(
        kernel, KERNEL, load_settings(kernel, workspace=Workspace(trusted=frozenset({Path("/")})))
    )
    assert file.stored is None
    latency = Latency(12.0, 11.0, 13.0, Known.ESTIMATED)
    measured = KernelMeasurement(
        "double", 6, "nki", "trn1", latency=latency, content_hash=file.source.kernels[0].content_hash
    )
    connection = Connection(Path(environment["ACCELOPT_DB"]))
    ProfileCache(connection).put(file.key, FileMeasurement(file.path, [measured]))
    connection.close()

    server, written = build(lambda surface: Silent(), parser), Written()
    server.protocol.set_writer(written)
    document = {"uri": kernel.as_uri(), "languageId": "python", "version": 1, "text": KERNEL}
    begin = {
        "rootUri": tmp_path.as_uri(),
        "processId": None,
        "initializationOptions": {"trusted": True},
        "capabilities": message_converter().unstructure(capabilities("vscode")),
    }
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": begin},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
    ]
    lens = {"id": 2, "method": "textDocument/codeLens", "params": {"textDocument": {"uri": kernel.as_uri()}}}

    async def title() -> str:
        receive(server, *messages, lens)
        messages.clear()
        await asyncio.sleep(0)
        lenses = [x for message in written.messages if message.get("id") == 2 for x in message["result"]]
        return next((x["command"]["title"] for x in lenses if "us" in x["command"]["title"]), "")

    assert (await until(title, "a lens with a time")).startswith("est. 11-13 us on trn1")
    parser.close()
