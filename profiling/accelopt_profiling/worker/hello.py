"""What a worker says first: its protocol, its Python, its packages and its devices."""

from __future__ import annotations

import contextlib
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from accelopt_profiling.plain import to_plain
from accelopt_profiling.worker.devices import gpus, neuron_cores
from accelopt_profiling.worker.isolation import Isolation

PROTOCOL = 1
_PACKAGES = ("numpy", "ml_dtypes", "torch", "triton", "neuronx-cc", "nki", "libneuronxla")


def hello(found: Isolation) -> dict[str, Any]:
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
        "isolation": to_plain(found),
    }


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


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
    """How many Neuron devices the driver shows, by the name that ``trainium`` looks for; empty where there are none."""
    count = len(list(Path("/dev").glob("neuron[0-9]*")))
    return {"neuron_devices": count} if count else {}
