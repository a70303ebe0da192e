"""Find the Trainium tools of a host, and open its device with those of the right generation."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_profiling.trainium.beta1 import Beta1Device
from accelopt_profiling.trainium.current import CurrentDevice
from accelopt_profiling.trainium.tools import DeviceError, find_tool

#: Printed wherever a device may be used, until someone reports that it ran.
NOT_YET_RUN = "not yet run on hardware"

NRTPY_PYTHON = "ACCELOPT_NRTPY_PYTHON"
_TOOLS = ("neuron-profile", "neuron-explorer", "neuron-ls", "neuron-top", "neuron-bench")
_PACKAGES = ("neuronx-cc", "nki", "nrtpy", "libneuronxla", "torch-neuronx")


@dataclass(frozen=True)
class Toolchain:
    """The installed tools. ``sdk`` is the module that compiles; ``tools`` maps programs to paths; ``devices`` are the
    driver's files; ``nrtpy_python`` another environment's Python.
    """

    sdk: str | None
    tools: dict[str, str]
    versions: dict[str, str]
    devices: list[str]
    nrtpy_python: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def find_toolchain(
    environment: Mapping[str, str],
    *,
    importable: Callable[[str], bool] | None = None,
    device_folder: Path = Path("/dev"),
) -> Toolchain:
    """List what is installed, without importing it or opening the device."""
    can = importable or _importable
    sdk = next((name for name in ("neuronxcc.nki", "nki.isa") if can(name)), None)
    tools = {name: path for name in _TOOLS if (path := find_tool(name, environment)) is not None}
    return Toolchain(
        sdk=sdk,
        tools=tools,
        versions=_versions(),
        devices=sorted(str(path) for path in device_folder.glob("neuron[0-9]*")),
        nrtpy_python=environment.get(NRTPY_PYTHON) or None,
        environment=environment,
    )


def open_device(toolchain: Toolchain) -> Beta1Device | CurrentDevice:
    """Return the device adapter for what the host has; the current tools win where both generations are installed.

    Raises:
        DeviceError: something is missing; the message says what to install.
    """
    if not toolchain.devices:
        raise DeviceError(
            "driver-missing", "There is no /dev/neuron0 on this machine",
            "Use a Trainium machine with the package aws-neuronx-dkms, or AccelOpt's estimates.",
        )  # fmt: skip
    if toolchain.sdk == "nki.isa":
        explorer = toolchain.tools.get("neuron-explorer")
        if explorer is None and toolchain.nrtpy_python is None:
            raise DeviceError(
                "missing-tool", "Neither neuron-explorer nor an nrtpy environment is installed",
                f"Install aws-neuronx-tools, or set {NRTPY_PYTHON}.",
            )  # fmt: skip
        return CurrentDevice(
            sys.executable, explorer, toolchain.nrtpy_python, toolchain.environment, toolchain.versions
        )
    if toolchain.sdk == "neuronxcc.nki":
        profiler = toolchain.tools.get("neuron-profile")
        if profiler is None:
            raise DeviceError(
                "missing-tool", "neuron-profile is not installed", "Install aws-neuronx-tools of SDK 2.26."
            )
        return Beta1Device(sys.executable, profiler, toolchain.environment, toolchain.versions)
    raise DeviceError(
        "no-toolchain", "Neither nki nor neuronxcc.nki can be imported",
        "Install AWS's Neuron SDK from its own package index; the packages of that name elsewhere are placeholders.",
    )  # fmt: skip


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _versions() -> dict[str, str]:
    versions: dict[str, str] = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
