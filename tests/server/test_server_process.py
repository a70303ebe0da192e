"""The process: nothing but the protocol on standard output, and an end when the editor goes away."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.editor import SCRIPTED
from support.processes import descendants, is_running
from support.scripted_kernels import KERNELS
from support.waiting import PATIENCE, until


def message(body: dict[str, Any]) -> bytes:
    data = json.dumps({"jsonrpc": "2.0", **body}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


async def start(environment: dict[str, str], *code: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, *(code or (SCRIPTED,))]
    return await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
    )


def opening(path: Path) -> bytes:
    document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": KERNELS}
    return (
        message({"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None}})
        + message({"method": "initialized", "params": {}})
        + message({"method": "textDocument/didOpen", "params": {"textDocument": document}})
    )


async def test_the_server_ends_with_its_editor(environment: dict[str, str], tmp_path: Path) -> None:
    """Without shutdown or exit, as when the editor is killed: the server and the processes it started are gone."""
    server = await start(environment)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(opening(tmp_path / "k.py"))
    await server.stdin.drain()
    await asyncio.wait_for(server.stdout.readline(), PATIENCE)
    (reader, *_) = await until(lambda: descendants(server.pid), "a child process")
    server.stdin.close()
    await asyncio.wait_for(server.communicate(), PATIENCE)
    await until(lambda: not is_running(reader), "the end of the child process")


@pytest.mark.slow
async def test_prints_do_not_meet_the_protocol(environment: dict[str, str]) -> None:
    """A library, or a child process, that prints: the client still reads whole messages only."""
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]);"
        "from scripted_server import Scripted; from accelopt_lsp.server.main import start;"
        "import accelopt_lsp.server.server as s; begin = s.AccelOptServer.begin;"
        "s.AccelOptServer.begin = lambda *a: (print('noise'), os.system('echo noise of a child'), begin(*a))[2];"
        "start(open_service=Scripted)"
    )
    server = await start(environment, "-c", code, str(Path(SCRIPTED).parent))
    requests = (
        message({"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None}})
        + message({"method": "initialized", "params": {}})
        + message({"id": 2, "method": "shutdown"})
        + message({"method": "exit"})
    )
    out, err = await asyncio.wait_for(server.communicate(requests), PATIENCE)
    assert b"noise of a child" in err
    while out:
        head = re.match(rb"Content-Length: (\d+)\r\n(?:[^\r\n]+\r\n)*\r\n", out)
        assert head is not None, out[:200]
        json.loads(out[head.end() : head.end() + int(head[1])])
        out = out[head.end() + int(head[1]) :]
    assert server.returncode == 0
