"""Messages as JSON on byte streams: open frames between a host and its caller, sealed ones from a step to the
supervisor.

An open frame is ``@accelopt/1 LENGTH`` and a newline, then LENGTH bytes of JSON and a newline. Anything between frames
(a login banner, a chatty shell profile, a stray print) is noise: it is skipped, and its first bytes are kept so that
an error message can show them.

User code in a step's process can write to its pipe too. Each message there carries a seal, made with a key that only
the supervisor and the code that sends know, over its number and its bytes: what user code writes has none, and ends
the step. A message is 16 bytes of seal, 4 bytes of length (big-endian) and that many bytes of JSON.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable
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


KEY_BYTES = 32
_SEAL_BYTES, _LENGTH_BYTES = 16, 4
_SEALED_HEADER = _SEAL_BYTES + _LENGTH_BYTES
_LARGEST = 64 << 20


class ForgedMessageError(Exception):
    """Bytes arrived that the sender did not write."""


def new_key() -> bytes:
    """Return a key for one step."""
    return secrets.token_bytes(KEY_BYTES)


def sealer(key: bytes) -> Callable[[dict[str, Any]], bytes]:
    """Return the function that encodes a step's messages, to be called for each of them in order.

    The key is in no variable that Python code could read back: only in the state of the hash.
    """
    keyed = hmac.new(key, digestmod=hashlib.sha256)
    number = 0

    def seal(message: dict[str, Any]) -> bytes:
        nonlocal number
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
        mac = keyed.copy()
        mac.update(number.to_bytes(8, "big") + body)
        number += 1
        return mac.digest()[:_SEAL_BYTES] + len(body).to_bytes(_LENGTH_BYTES, "big") + body

    return seal


class SealedDecoder:
    """Turns the bytes of one step into messages.

    Raises:
        ForgedMessageError: a message has no seal, or not the one that belongs to it and its place in the order.
    """

    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, digestmod=hashlib.sha256)
        self._buffer = bytearray()
        self._number = 0

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        self._buffer += data
        messages: list[dict[str, Any]] = []
        while len(self._buffer) >= _SEALED_HEADER:
            length = int.from_bytes(self._buffer[_SEAL_BYTES:_SEALED_HEADER], "big")
            if length > _LARGEST:
                raise ForgedMessageError
            if len(self._buffer) < _SEALED_HEADER + length:
                break
            end = _SEALED_HEADER + length
            seal, body = bytes(self._buffer[:_SEAL_BYTES]), bytes(self._buffer[_SEALED_HEADER:end])
            del self._buffer[:end]
            mac = self._keyed.copy()
            mac.update(self._number.to_bytes(8, "big") + body)
            if not hmac.compare_digest(seal, mac.digest()[:_SEAL_BYTES]):
                raise ForgedMessageError
            self._number += 1
            messages.append(json.loads(body))
        return messages

    @property
    def unfinished(self) -> bool:
        """True while a message has begun and not ended."""
        return bool(self._buffer)
