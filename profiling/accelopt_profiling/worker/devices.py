"""The accelerators of a host, as the vendors' own listing tools tell them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

UNIFIED_MEMORY = Path("/dev/nvidia-uvm")
_NVIDIA_FIELDS = ("index", "name", "uuid", "driver_version", "memory.total", "memory.free", "compute_cap")


def gpus() -> list[dict[str, Any]]:
    """One object per GPU with "name" and what else is known; NVIDIA's fields are named as ``nvidia-smi`` names them,
    AMD's are "index", "name", "driver_version", "memory.total" and "memory.free" too. Memory is in MiB.
    """
    _make_cuda_ready()
    fields = ",".join(_NVIDIA_FIELDS)
    nvidia = parse_nvidia(_said("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"))
    rocm = ("--showproductname", "--showdriverversion", "--showmeminfo", "vram", "--json")
    return nvidia or parse_rocm(_said("rocm-smi", *rocm))


def _make_cuda_ready() -> None:
    """Let NVIDIA's helper make the device file that CUDA's first program after a boot makes: a step, which has no
    privileges, cannot.
    """
    if not UNIFIED_MEMORY.exists():
        _said("nvidia-modprobe", "-u", "-c=0")


def neuron_cores() -> int:
    """The NeuronCores that ``neuron-ls`` lists, 0 without it."""
    return parse_neuron(_said("neuron-ls", "--json-output"))


def parse_nvidia(text: str) -> list[dict[str, Any]]:
    """What ``nvidia-smi`` printed as CSV, an object per GPU; lines of another form are passed over. Memory in MiB."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    return [dict(zip(_NVIDIA_FIELDS, row, strict=True)) for row in rows if len(row) == len(_NVIDIA_FIELDS)]


def parse_rocm(text: str) -> list[dict[str, Any]]:
    """What ``rocm-smi --json`` printed (bytes), in the words of ``gpus`` (MiB); nothing where it is no JSON object."""
    cards = _json(text, dict)
    system = cards.get("system")
    driver = str(system.get("Driver version", "")) if isinstance(system, dict) else ""
    found = []
    for name, card in sorted(cards.items()):
        if name.startswith("card") and isinstance(card, dict):
            total, used = (_number(card.get(f"VRAM Total {what} (B)")) for what in ("Memory", "Used Memory"))
            found.append({
                "index": name[4:], "name": str(card.get("Card Series") or card.get("Card series") or "AMD GPU"),
                "driver_version": driver, "memory.total": str(total >> 20), "memory.free": str((total - used) >> 20),
            })  # fmt: skip
    return found


def parse_neuron(text: str) -> int:
    """The sum of the cores that ``neuron-ls --json-output`` printed; 0 where it is no JSON list."""
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


def _said(program: str, *arguments: str) -> str:
    """What the program prints; nothing when it is not there or fails."""
    if shutil.which(program) is None:
        return ""
    command: Sequence[str] = [program, *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
