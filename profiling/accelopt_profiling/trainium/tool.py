"""Start one of Neuron's programs and check how it ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from accelopt_profiling.trainium.failure import DeviceFailure, explained

#: Where the package aws-neuronx-tools puts its programs; it is on few people's PATH.
NEURON_BIN = "/opt/aws/neuron/bin"
_LAST_WORDS = 2000


def find_tool(name: str, environment: Mapping[str, str]) -> str | None:
    """The path of a Neuron program, None when it is not installed."""
    path = environment.get("PATH", os.defpath)
    return shutil.which(name, path=os.pathsep.join([path, NEURON_BIN]))


def run_tool(command: Sequence[str], *, seconds: float, environment: Mapping[str, str], folder: Path) -> str:
    """What a program prints on standard output.

    It runs in ``folder``, in a session of its own; after ``seconds`` all its processes are killed.

    Raises:
        DeviceFailure: it is not there, ended with another code than 0, or took too long.
    """
    name = Path(command[0]).name
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
            env=dict(environment), start_new_session=True, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        fix = "Install aws-neuronx-tools, or correct PATH."
        raise DeviceFailure(
            "missing-tool", f"{command[0]} cannot be started: {error.strerror or error}", fix
        ) from None
    try:
        printed, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise DeviceFailure(
            "timeout",
            f"{name} did not end within {seconds:g} s",
            "Look whether the device hangs (`neuron-top`), or allow more time.",
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode != 0:
        words = (said.strip() or printed.strip())[-_LAST_WORDS:]
        last = words.splitlines()[-1] if words else "it said nothing"
        how = (
            f"was ended by signal {-process.returncode}"
            if process.returncode < 0
            else f"ended with exit code {process.returncode}"
        )
        raise explained(
            f"{said}\n{printed}", DeviceFailure("tool-failed", f"{name} {how}: {last}", detail=words)
        )
    return printed
