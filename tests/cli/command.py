"""Runs a command in this process as the console script would, and reads what it prints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from accelopt_lsp.cli.main import run


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        """The one JSON object on standard output; anything beside it is an error."""
        return json.loads(self.out)


class Command:
    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: object) -> Ended:
        self._capture.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = self._capture.readouterr()
        return Ended(code, out, err)
