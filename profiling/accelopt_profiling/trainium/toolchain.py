"""Find the Trainium tools of a host, and open its device with those of the right generation."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from accelopt_profiling.kernels import Kernel
from accelopt_profiling.trainium.beta1 import Beta1Device
from accelopt_profiling.trainium.current import CurrentDevice
from accelopt_profiling.trainium.tools import DeviceError, find_tool

#: Printed wherever a device may be used, until someone reports that it ran.
NOT_YET_RUN = "not yet run on hardware"

NRTPY_PYTHON = "ACCELOPT_NRTPY_PYTHON"
_TOOLS = ("neuron-profile", "neuron-explorer", "neuron-ls", "neuron-top", "neuron-bench")
_PACKAGES = ("neuronx-cc", "nki", "nrtpy", "libneuronxla", "torch-neuronx")


#: A generation of NKI: Beta 1 (``neuronxcc.nki``) or today's (``nki``). Kernels of one do not run in the other.
Generation = Literal["beta1", "current"]
_MODULES: dict[Generation, str] = {"beta1": "neuronxcc.nki", "current": "nki.isa"}


def generation_of(kernel: Kernel) -> Generation:
    """Return the generation of NKI that an NKI kernel is written in."""
    return "beta1" if kernel.beta1 else "current"


@dataclass(frozen=True)
class Toolchain:
    """The installed tools.

    ``generations`` are those of NKI that can be imported; ``tools`` maps programs to paths; ``devices`` are the
    driver's files; ``nrtpy_python`` another environment's Python.
    """

    generations: tuple[Generation, ...]
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
    tools = {name: path for name in _TOOLS if (path := find_tool(name, environment)) is not None}
    return Toolchain(
        generations=tuple(generation for generation, module in _MODULES.items() if can(module)),
        tools=tools,
        versions=_versions(),
        devices=sorted(str(path) for path in device_folder.glob("neuron[0-9]*")),
        nrtpy_python=environment.get(NRTPY_PYTHON) or None,
        environment=environment,
    )


def open_device(toolchain: Toolchain, generation: Generation | None = None) -> Beta1Device | CurrentDevice:
    """Return the device adapter for kernels of ``generation``.

    Without one, for any generation that the host has.

    Beta 1's entry points return zeros without an error where today's package can be imported as well (nki-samples
    issue 134), so Beta 1 kernels are not run there.

    Raises:
        DeviceError: something is missing; the message says what to install.
    """
    if not toolchain.devices:
        raise DeviceError(
            "driver-missing", "There is no /dev/neuron0 on this machine",
            "Use a Trainium machine with the package aws-neuronx-dkms, or AccelOpt's estimates.",
        )  # fmt: skip
    choice = generation or ("current" if "current" in toolchain.generations else "beta1")
    if choice not in toolchain.generations:
        raise _missing_generation(toolchain, generation)
    if choice == "current":
        explorer = toolchain.tools.get("neuron-explorer")
        if explorer is None and toolchain.nrtpy_python is None:
            raise DeviceError(
                "missing-tool", "Neither neuron-explorer nor an nrtpy environment is installed",
                f"Install aws-neuronx-tools, or set {NRTPY_PYTHON}.",
            )  # fmt: skip
        return CurrentDevice(
            sys.executable,
            explorer,
            nrtpy_python=toolchain.nrtpy_python,
            environment=toolchain.environment,
            toolchain=toolchain.versions,
        )
    if "current" in toolchain.generations:
        version = toolchain.versions.get("nki", "")
        raise DeviceError(
            "mixed-toolchain",
            f"The kernel is written for neuronxcc.nki, whose entry points return zeros beside nki {version}".rstrip(),
            "Run it in an environment of SDK 2.26 without the package nki, or bring it to today's dialect with "
            "`accelopt migrate`.",
        )  # fmt: skip
    profiler = toolchain.tools.get("neuron-profile")
    if profiler is None:
        raise DeviceError(
            "missing-tool", "neuron-profile is not installed", "Install aws-neuronx-tools of SDK 2.26."
        )
    return Beta1Device(sys.executable, profiler, toolchain.environment, toolchain.versions)


def _missing_generation(toolchain: Toolchain, generation: Generation | None) -> DeviceError:
    if generation is None or not toolchain.generations:
        return DeviceError(
            "no-toolchain", "Neither nki nor neuronxcc.nki can be imported",
            "Install AWS's Neuron SDK from its own package index; packages of that name elsewhere are placeholders.",
        )  # fmt: skip
    if generation == "current":
        return DeviceError(
            "no-toolchain", "The kernel is written for nki, and only neuronxcc.nki can be imported",
            "Run it in an environment of Neuron SDK 2.29 or newer.",
        )  # fmt: skip
    return DeviceError(
        "no-toolchain", "The kernel is written for neuronxcc.nki, and only nki can be imported",
        "Run it in an environment of SDK 2.26, or bring it to today's dialect with `accelopt migrate`.",
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
