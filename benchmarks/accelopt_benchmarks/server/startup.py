"""Measure the start of the server: to the answer of ``initialize``, and to the first lens of a profiled file.

Beside it, in turns, another language server (pyright's, where it is on the path): on a busy machine only the ratio of
the two says something.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_lsp.demo.editor import timed_title
from accelopt_lsp.own_process import own_process

ROUNDS = 7
FILE = "nki_silu.py"
SERVER = own_process("accelopt_lsp.lsp_command")
#: The server to compare with: pyright's, from the npm package of that name.
PEER = ("pyright-langserver", "--stdio")
INITIALIZE, LENS = (
    "process start to initialize answered",
    "process start to the first lens of a profiled file",
)

_CAPABILITIES = {"workspace": {"codeLens": {"refreshSupport": True}}, "textDocument": {"codeLens": {}}}


async def startup(examples: Path, rounds: int = ROUNDS) -> list[GoalResult]:
    """Return medians over ``rounds`` starts, the server and its peer in turns, after two starts that profile the
    file."""
    return await asyncio.to_thread(_startup, examples, rounds)


def _startup(examples: Path, rounds: int) -> list[GoalResult]:
    with tempfile.TemporaryDirectory(prefix="accelopt-bench-") as name:
        folder = Path(name)
        shutil.copy(examples / FILE, folder)
        with_peer = shutil.which(PEER[0]) is not None
        for _ in range(2):
            _once(SERVER, folder, profiled=False)
        own: list[tuple[float, float]] = []
        peers: list[float] = []
        for _ in range(rounds):
            own.append(_once(SERVER, folder, profiled=True))
            if with_peer:
                peers.append(_once(PEER, folder, lens=False)[0])
    goals = ((INITIALIZE, 1.0), (LENS, 1.3))
    if not with_peer:
        why = f"{PEER[0]} is not on the path; here {', '.join(_seconds(t) for t in zip(*own, strict=True))}"
        return [not_measured(what, f"<= {goal:g}x pyright's initialize", why) for what, goal in goals]
    peer, rows = statistics.median(peers), []
    for (what, goal), times in zip(goals, zip(*own, strict=True), strict=True):
        ratio = statistics.median(times) / peer
        detail = f"{_seconds(times)}; pyright's initialize {_seconds(peers)}; {rounds} starts each, in turns"
        rows.append(GoalResult(what, f"<= {goal:g}x pyright's initialize", ratio, "x", ratio <= goal, detail))
    return rows


def _seconds(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.2f} s ({min(times):.2f}-{max(times):.2f})"


def _once(
    command: Sequence[str], folder: Path, *, profiled: bool = False, lens: bool = True
) -> tuple[float, float]:
    """Seconds from the start of a server to its first answer and to the first lens with a time; with ``profiled`` the
    first one counts, otherwise one after the whole profile."""
    environment = {
        **os.environ,
        "ACCELOPT_DB": str(folder / "memory.db"),
        "ACCELOPT_CONFIG": str(folder / "none"),
    }
    file, clock = folder / FILE, time.perf_counter()
    client = _Client(command, folder, environment)
    try:
        params = {
            "processId": None, "rootUri": folder.as_uri(), "capabilities": _CAPABILITIES,
            "initializationOptions": {"trusted": True},
        }  # fmt: skip
        client.request("initialize", params)
        client.answer()
        answered = time.perf_counter() - clock
        client.send({"method": "initialized", "params": {}})
        if lens:
            document = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": file.read_text()}
            client.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
            while not (title := timed_title(client.lens_titles(file))) or (
                not profiled and "profiling" in title
            ):
                pass
        lens_time = time.perf_counter() - clock
        client.request("shutdown", None)
        client.answer()
        client.send({"method": "exit"})
    finally:
        client.close()
    return answered, lens_time


class _Client:
    """The smallest editor: requests one at a time, every request of the server answered with null."""

    def __init__(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=folder, env=environment
        )
        self._number = 0

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def request(self, method: str, params: Any) -> None:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})

    def answer(self) -> Any:
        """Return the result of the last request.

        Raises:
            EOFError: the server ended.
        """
        while True:
            message = self._read()
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "result": None})
            elif message.get("id") == self._number:
                return message.get("result")

    def lens_titles(self, file: Path) -> list[str]:
        time.sleep(0.005)
        self.request("textDocument/codeLens", {"textDocument": {"uri": file.as_uri()}})
        return [lens["command"]["title"] for lens in self.answer() or []]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while (line := self._process.stdout.readline()) != b"\r\n":
            if not line:
                raise EOFError("the server ended")
            if line.lower().startswith(b"content-length:"):
                length = int(line[15:])
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message
