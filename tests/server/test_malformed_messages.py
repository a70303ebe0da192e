"""Malformed messages are refused one by one: the server lives, answers each request, and keeps nothing of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from server.test_start import Unstarted, Written

from accelopt_benchmarks.server.malformed import malformed
from accelopt_lsp.server.server import AccelOptServer
from accelopt_lsp.server.setup import build
from accelopt_lsp.service.parser import ParserProcess

INVALID_REQUEST = -32600
COUNT = 1200
EXAMPLES = Path(__file__).parents[2] / "examples"


def receive(server: AccelOptServer, body: bytes) -> None:
    """Read a message as pygls' reader does: what cannot be read is logged, and nothing ends."""
    try:
        server.protocol.handle_message(json.loads(body, object_hook=server.protocol.structure_message))
    except Exception:
        return


async def served(*bodies: bytes) -> tuple[AccelOptServer, list[dict[str, Any]]]:
    server, written = build(lambda surface: Unstarted(), ParserProcess()), Written()
    server.protocol.set_writer(written)
    for body in bodies:
        receive(server, body)
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    return server, written.messages


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"id": 7, "method": 3}, INVALID_REQUEST),
        ({"id": 7, "method": None}, INVALID_REQUEST),
        ({"id": 7, "method": "textDocument/hover", "params": {"textDocument": 3}}, -32602),
        ({"id": 7, "method": "no/such", "params": {}}, -32601),
    ],
)
async def test_a_request_that_cannot_be_read_is_answered_with_the_reason(
    message: dict[str, Any], code: int
) -> None:
    _, answers = await served(json.dumps({"jsonrpc": "2.0", **message}).encode())
    assert [(a["id"], a["error"]["code"]) for a in answers if "error" in a] == [(7, code)]


@pytest.mark.parametrize("number", [[], {}, [1], 1.5])
async def test_a_request_with_an_unreadable_id_ends_nothing(number: object) -> None:
    after = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "textDocument/codeLens",
        "params": {"textDocument": {"uri": "x"}},
    }
    bad = {"jsonrpc": "2.0", "id": number, "method": "shutdown"}
    _, answers = await served(json.dumps(bad).encode(), json.dumps(after).encode())
    assert [a["id"] for a in answers] == [1]


@pytest.mark.slow
async def test_a_server_outlives_damaged_messages_and_answers_each() -> None:
    outlived, _, unanswered, own_faults = await malformed(EXAMPLES, COUNT)
    assert outlived.met, outlived
    assert unanswered.met, unanswered
    assert own_faults.met, own_faults


async def test_nothing_of_a_notification_is_kept() -> None:
    opened = {"textDocument": {"uri": "file:///k.py", "languageId": "python", "version": 1, "text": ""}}
    changed = {"textDocument": {"uri": "file:///k.py", "version": 2}, "contentChanges": [{"text": "x"}]}
    bodies = [{"method": "textDocument/didOpen", "params": opened}]
    bodies += [{"method": "textDocument/didChange", "params": changed}] * 50
    server, _ = await served(*(json.dumps({"jsonrpc": "2.0", **body}).encode() for body in bodies))
    assert server.protocol._request_futures == {}
