"""Why a device could not be used, in the words of whoever has to fix it."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import Any


class DeviceFailure(Exception):
    """What happened, to what, and what to do next.

    ``code`` is stable: "missing-tool", "tool-failed", "timeout", "bad-profile", "driver-missing", "device-busy",
    "wrong-target", "device-memory", "kernel-failed", "no-toolchain". ``detail`` is the tool's own last words.
    """

    def __init__(self, code: str, message: str, fix: str = "", detail: str = "") -> None:
        super().__init__(f"{message}. {fix}".strip() if fix else message)
        self.code, self.message, self.fix, self.detail = code, message, fix, detail


@cache
def _known() -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath("failures.json").read_text(encoding="utf-8")
    failures: list[dict[str, Any]] = json.loads(text)["failures"]
    return failures


def explained(output: str, otherwise: DeviceFailure) -> DeviceFailure:
    """The failure that a tool's output tells of, ``otherwise`` when it tells of none that we know."""
    for known in _known():
        for pattern in known["patterns"]:
            found = re.search(pattern, output)
            if found is not None:
                line = next((text for text in output.splitlines() if found[0] in text), found[0])
                return DeviceFailure(known["code"], known["message"], known["fix"], line.strip()[:500])
    return otherwise
