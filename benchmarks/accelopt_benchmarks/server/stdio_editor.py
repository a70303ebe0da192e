"""An editor of one request at a time over stdio: nothing of its own stands in a measured time."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelopt_lsp.own_process import own_process

SERVER = own_process("accelopt_lsp.lsp_command")


class StdioEditor:
    """Answers each request of the server with null and keeps the last findings of each document."""

    def __init__(self, folder: Path, environment: Mapping[str, str], command: Sequence[str] = SERVER) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=folder, env=environment
        )
        self._number = 0
        self.findings: dict[str, list[dict[str, Any]]] = {}
        #: The error of the last request; None where it has a result.
        self.error: dict[str, Any] | None = None
        #: The answers to what was sent as it is, until somebody takes them.
        self.other_answers: list[dict[str, Any]] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """The exit code of the server; None while it runs."""
        return self._process.poll()

    def initialize(self, folder: Path, capabilities: Mapping[str, Any]) -> Any:
        params = {
            "processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities,
            "initializationOptions": {"trusted": True},
        }  # fmt: skip
        return self.ask("initialize", params)

    def send(self, message: Mapping[str, Any]) -> None:
        self.send_raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_raw(self, body: bytes) -> None:
        """Send a body that need not be JSON."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        self.send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> None:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})

    def answer(self) -> Any:
        """Return the result of the last request, None where it failed.

        Raises:
            EOFError: the server ended.
        """
        while True:
            message = self._read()
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "result": None})
            elif message.get("method") == "textDocument/publishDiagnostics":
                self.findings[message["params"]["uri"]] = message["params"]["diagnostics"]
            elif "id" in message and message["id"] == self._number:
                self.error = message.get("error")
                return message.get("result")
            elif "method" not in message:
                self.other_answers.append(message)

    def ask(self, method: str, params: Any) -> Any:
        self.request(method, params)
        return self.answer()

    def timed(self, method: str, params: Any) -> float:
        """Return the milliseconds from a request to its answer."""
        clock = time.perf_counter()
        self.ask(method, params)
        return 1000 * (time.perf_counter() - clock)

    def open(self, file: Path) -> str:
        uri, text = file.as_uri(), file.read_text(encoding="utf-8")
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", textDocument=document)
        return uri

    def lens_titles(self, uri: str) -> list[str]:
        lenses = self.ask("textDocument/codeLens", {"textDocument": {"uri": uri}})
        return [lens["command"]["title"] for lens in lenses or []]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

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
