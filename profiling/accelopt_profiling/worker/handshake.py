"""The worker's first message: its protocol, its Python, its packages and its devices."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from accelopt_profiling.plain import to_plain
from accelopt_profiling.worker.isolation import Isolation

PROTOCOL = 1
_PACKAGES = ("numpy", "ml_dtypes", "torch", "triton", "neuronx-cc", "nki", "libneuronxla")


def hello(isolation: Isolation) -> dict[str, Any]:
    """Return the first message; runs the vendors' tools, which may take seconds."""
    return {
        "type": "hello",
        "protocol": PROTOCOL,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count() or 1,
        "memory_bytes": _memory(),
        "memory_free_bytes": _free_memory(),
        "versions": _versions(),
        "devices": gpus(),
        "resources": {**_neuron_devices(), **({"neuron_cores": cores} if (cores := neuron_cores()) else {})},
        "isolation": to_plain(isolation),
    }


def _versions() -> dict[str, str]:
    versions: dict[str, str] = {}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def _memory() -> int:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0


def _free_memory() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def _neuron_devices() -> dict[str, int]:
    """Count the Neuron devices of the driver, by the name that ``trainium`` uses; empty where there are none."""
    count = len(list(Path("/dev").glob("neuron[0-9]*")))
    return {"neuron_devices": count} if count else {}


UNIFIED_MEMORY = Path("/dev/nvidia-uvm")
_NVIDIA_FIELDS = ("index", "name", "uuid", "driver_version", "memory.total", "memory.free", "compute_cap")


def gpus() -> list[dict[str, Any]]:
    """Return one object per GPU with "name" and what else is known.

    NVIDIA's fields are named as ``nvidia-smi`` names them, AMD's are "index", "name", "driver_version", "memory.total"
    and "memory.free" too. Memory is in MiB.
    """
    _make_cuda_ready()
    fields = ",".join(_NVIDIA_FIELDS)
    nvidia = parse_nvidia(_output_of("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"))
    rocm = ("--showproductname", "--showdriverversion", "--showmeminfo", "vram", "--json")
    return nvidia or parse_rocm(_output_of("rocm-smi", *rocm))


def _make_cuda_ready() -> None:
    """Let NVIDIA's helper make the device file that CUDA's first program after a boot makes: a step, which has no
    privileges, cannot.
    """
    if not UNIFIED_MEMORY.exists():
        _output_of("nvidia-modprobe", "-u", "-c=0")


def neuron_cores() -> int:
    """Return the number of NeuronCores that ``neuron-ls`` lists, 0 without it."""
    return parse_neuron(_output_of("neuron-ls", "--json-output"))


def parse_nvidia(text: str) -> list[dict[str, Any]]:
    """Read the CSV of ``nvidia-smi``: an object per GPU; lines of another form are left out. Memory in MiB."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    return [dict(zip(_NVIDIA_FIELDS, row, strict=True)) for row in rows if len(row) == len(_NVIDIA_FIELDS)]


def parse_rocm(text: str) -> list[dict[str, Any]]:
    """Read the output of ``rocm-smi --json`` (bytes) into the fields of ``gpus`` (MiB); empty where it is no JSON
    object.
    """
    cards = _json(text, dict)
    system = cards.get("system")
    driver = str(system.get("Driver version", "")) if isinstance(system, dict) else ""
    rows = []
    for name, card in sorted(cards.items()):
        if name.startswith("card") and isinstance(card, dict):
            total, used = (_number(card.get(f"VRAM Total {what} (B)")) for what in ("Memory", "Used Memory"))
            rows.append({
                "index": name[4:], "name": str(card.get("Card Series") or card.get("Card series") or "AMD GPU"),
                "driver_version": driver, "memory.total": str(total >> 20), "memory.free": str((total - used) >> 20),
            })  # fmt: skip
    return rows


def parse_neuron(text: str) -> int:
    """Sum up the cores in the output of ``neuron-ls --json-output``. 0 where it is no JSON list."""
    return sum(
        device["nc_count"]
        for device in _json(text, list)
        if isinstance(device, dict) and isinstance(device.get("nc_count"), int)
    )


def _json(text: str, kind: type[Any]) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return kind()
    return value if isinstance(value, kind) else kind()


def _number(text: Any) -> int:
    return int(text) if str(text).isdigit() else 0


def _output_of(program: str, *arguments: str) -> str:
    """Return what a program prints. Nothing when it is not there or fails."""
    if shutil.which(program) is None:
        return ""
    command: Sequence[str] = [program, *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
