"""Framed JSON on a byte stream: ``@accelopt/1 LENGTH`` and a newline, then LENGTH bytes of JSON and a newline.

Anything between frames (a login banner, a chatty shell profile, a stray print) is noise: it is skipped, and its first
bytes are kept so that an error message can show them.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAGIC = b"@accelopt/1 "
LARGEST_FRAME = 256 << 20
_KEPT_NOISE = 2000
_HEADER = re.compile(rb"@accelopt/1 (\d{1,12})\n")


def encode(message: dict[str, Any]) -> bytes:
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    return MAGIC + str(len(body)).encode() + b"\n" + body + b"\n"


class Decoder:
    """Turns bytes into messages. ``noise`` holds the first bytes that belonged to no frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body: int | None = None  # length of the frame whose header was read
        self.noise = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        self._buffer += data
        messages: list[dict[str, Any]] = []
        while True:
            if self._body is None and not self._read_header():
                return messages
            assert self._body is not None
            if len(self._buffer) < self._body:
                return messages
            body = bytes(self._buffer[: self._body])
            del self._buffer[: self._body]
            self._body = None
            try:
                message = json.loads(body)
            except (ValueError, RecursionError):
                self._drop(body)
                continue
            if isinstance(message, dict):
                messages.append(message)

    def _read_header(self) -> bool:
        while header := _HEADER.search(self._buffer):
            length = int(header.group(1))
            self._drop(bytes(self._buffer[: header.start()]))
            del self._buffer[: header.end()]
            if length <= LARGEST_FRAME:
                self._body = length
                return True
        keep = max(0, len(self._buffer) - 64)  # longer than any header, which may be cut here
        self._drop(bytes(self._buffer[:keep]))
        del self._buffer[:keep]
        return False

    def _drop(self, data: bytes) -> None:
        data = data.strip(b"\n")
        if data and len(self.noise) < _KEPT_NOISE:
            self.noise = (self.noise + data + b"\n")[:_KEPT_NOISE]
