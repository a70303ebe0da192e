"""Find and start Neuron's programs, and explain their failures in the words of whoever has to mend them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

#: Where the package aws-neuronx-tools puts its programs; it is on few people's PATH.
NEURON_BIN = "/opt/aws/neuron/bin"
#: How much of a program's output an error keeps, in characters.
_TAIL = 2000


class DeviceError(Exception):
    """A device that could not be used: what happened, to what, and what to do next.

    ``code`` is stable: "unsupported", "missing-tool", "tool-failed", "timeout", "bad-profile", "driver-missing",
    "device-busy", "wrong-target", "device-memory", "kernel-failed", "no-toolchain", "mixed-toolchain". ``detail`` is
    the end of the tool's output.
    """

    def __init__(self, code: str, message: str, fix: str = "", detail: str = "") -> None:
        super().__init__(f"{message}. {fix}".strip() if fix else message)
        self.code, self.message, self.fix, self.detail = code, message, fix, detail


@cache
def _known() -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath("failures.json").read_text(encoding="utf-8")
    failures: list[dict[str, Any]] = json.loads(text)["failures"]
    return failures


def explain_failure(output: str, otherwise: DeviceError) -> DeviceError:
    """Return the known failure whose pattern a tool's output matches. ``otherwise`` where none does."""
    for failure in _known():
        for pattern in failure["patterns"]:
            match = re.search(pattern, output)
            if match is not None:
                line = next((text for text in output.splitlines() if match[0] in text), match[0])
                return DeviceError(failure["code"], failure["message"], failure["fix"], line.strip()[:500])
    return otherwise


def find_tool(name: str, environment: Mapping[str, str]) -> str | None:
    """Return the path of a Neuron program, None where it is not installed."""
    path = environment.get("PATH", os.defpath)
    return shutil.which(name, path=os.pathsep.join([path, NEURON_BIN]))


def run_tool(command: Sequence[str], *, seconds: float, environment: Mapping[str, str], folder: Path) -> str:
    """Run a program and return what it prints on standard output.

    It runs in ``folder``, in a session of its own; after ``seconds`` all its processes are killed.

    Raises:
        DeviceError: it is not there, ended with another code than 0, or took too long.
    """
    name = Path(command[0]).name
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
            env=dict(environment), start_new_session=True, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        fix = "Install aws-neuronx-tools, or correct PATH."
        raise DeviceError(
            "missing-tool", f"{command[0]} cannot be started: {error.strerror or error}", fix
        ) from None
    try:
        printed, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise DeviceError(
            "timeout",
            f"{name} did not end within {seconds:g} s",
            "Check whether the device hangs (`neuron-top`), or allow more time.",
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode != 0:
        tail = (errors.strip() or printed.strip())[-_TAIL:]
        last = tail.splitlines()[-1] if tail else "it printed nothing"
        how = (
            f"was ended by signal {-process.returncode}"
            if process.returncode < 0
            else f"ended with exit code {process.returncode}"
        )
        raise explain_failure(
            f"{errors}\n{printed}", DeviceError("tool-failed", f"{name} {how}: {last}", detail=tail)
        )
    return printed
