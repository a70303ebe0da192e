"""Pack what a report about a device needs into one archive, without secrets: versions, tools, devices, settings."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelopt_profiling import __version__
from accelopt_profiling.trainium.toolchain import NOT_YET_RUN, Toolchain
from accelopt_profiling.trainium.tools import DeviceError, run_tool

#: Variables whose names start so are about Neuron or us; no other variable is read.
_OURS = ("NEURON_", "NKI_", "ACCELOPT_", "XLA_", "TORCH_NEURONX_")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|URL|URI|ENDPOINT", re.IGNORECASE)
_COMMANDS = {
    "neuron-ls": ["--json-output"],
    "neuron-explorer": ["--version"],
    "neuron-profile": ["--version"],
}
_OUTPUT = 200_000


def write_bundle(path: Path, toolchain: Toolchain, checks: Any, folder: Path) -> list[str]:
    """Write the archive and name its files.

    ``checks`` is what ``accelopt doctor`` found, as plain data.

    Raises:
        OSError: it cannot be written.
    """
    files = {
        "about.json": _json(about(toolchain)),
        "doctor.json": _json(checks),
        "environment.json": _json(environment(toolchain.environment)),
    }
    for name, arguments in _COMMANDS.items():
        if name in toolchain.tools:
            files[f"{name}.txt"] = _output_of(
                [toolchain.tools[name], *arguments], toolchain.environment, folder
            )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, without_home(text))
    return list(files)


def about(toolchain: Toolchain) -> dict[str, Any]:
    """Return versions and tools. Nothing of kernels, of the memory or of people's files."""
    return {
        "accelopt": __version__,
        "adapters": NOT_YET_RUN,
        "python": sys.version,
        "system": platform.platform(),
        "generations": list(toolchain.generations),
        "packages": toolchain.versions,
        "tools": toolchain.tools,
        "devices": toolchain.devices,
        "nrtpy": toolchain.nrtpy_python is not None,
    }


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables about Neuron and AccelOpt, those that may hold a secret with their value left out."""
    return {
        name: "(left out)" if _SECRET.search(name) else value
        for name, value in sorted(variables.items())
        if name.startswith(_OURS)
    }


def without_home(text: str) -> str:
    """Return the text with the home folder, and with it the user's name, as ``~``."""
    home = os.path.expanduser("~")
    return text.replace(home, "~") if len(home) > 1 else text


def _output_of(command: list[str], variables: Mapping[str, str], folder: Path) -> str:
    try:
        return run_tool(command, seconds=20, environment=variables, folder=folder)[:_OUTPUT]
    except DeviceError as failure:
        return f"{failure}\n{failure.detail}\n"


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
