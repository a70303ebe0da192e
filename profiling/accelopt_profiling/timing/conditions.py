"""Clocks, temperature and power of a device, read through the vendor's tool before and after a measurement."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

_NVIDIA = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
#: Why the clocks are lower than they could be: today's name, and that of drivers before 535.
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
#: Bits of NVIDIA's throttle reasons that mean "slower than it could be"; idle and the user's own clocks do not.
_SLOWED = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "temperature",
    0x40: "temperature",
    0x80: "power brake",
}
_LEAST_CLOCK_CHANGE = 0.03


@dataclass(frozen=True)
class Conditions:
    """None where the tool does not tell. Clocks in MHz, temperature in degrees Celsius, power in watts."""

    core_mhz: float | None = None
    memory_mhz: float | None = None
    celsius: float | None = None
    watts: float | None = None
    slowed_by: str = ""


def read_conditions(identifier: str | None = None) -> Conditions | None:
    """Return the conditions of a device now.

    None without ``nvidia-smi`` and ``rocm-smi``, or when they fail.

    ``identifier`` is what the tool knows it by (``device.TorchDevice``). Without one, ``nvidia-smi`` is asked for the
    first device; of several of AMD's none is taken for the one that is meant.
    """
    if shutil.which("nvidia-smi"):
        for reasons in _REASONS:
            fields = ",".join((*_NVIDIA, reasons))
            command = [
                "nvidia-smi",
                f"--id={identifier or '0'}",
                f"--query-gpu={fields}",
                "--format=csv,noheader,nounits",
            ]
            if (message := _said(command)) is not None:
                return parse_nvidia(message)
        return None
    if shutil.which("rocm-smi"):
        message = _said(["rocm-smi", "--showbus", "--showclocks", "--showtemp", "--showpower", "--json"])
        return parse_rocm(message, identifier) if message is not None else None
    return None


def _said(command: list[str]) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def parse_nvidia(text: str) -> Conditions | None:
    """Return one line of ``nvidia-smi``'s CSV; "[N/A]" and the like are None."""
    cells = [cell.strip() for cell in text.strip().partition("\n")[0].split(",")]
    if len(cells) != len(_NVIDIA) + 1:
        return None
    core, memory, celsius, watts = (_number(cell) for cell in cells[:4])
    try:
        bits = int(cells[4], 16)
    except ValueError:
        bits = 0
    return Conditions(
        core,
        memory,
        celsius=celsius,
        watts=watts,
        slowed_by=", ".join(dict.fromkeys(w for b, w in _SLOWED.items() if bits & b)),
    )


def parse_rocm(text: str, address: str | None = None) -> Conditions | None:
    """``rocm-smi --json``: one object per card, its keys worded differently from release to release.

    ``address`` is the PCI address of the card that is meant ("0000:c1:00.0"). None when no card has it, and without one
    when there are several.
    """
    try:
        cards = [
            card
            for name, card in json.loads(text).items()
            if name.startswith("card") and isinstance(card, dict)
        ]
    except (ValueError, AttributeError):
        return None
    if len(cards) > 1:
        cards = [card for card in cards if address and _same_address(_text(card, "pci bus"), address)]
    if len(cards) != 1:
        return None
    card = cards[0]
    return Conditions(
        _field(card, "sclk clock speed"), _field(card, "mclk clock speed"),
        _field(card, "temperature", "edge") or _field(card, "temperature", "junction"), _field(card, "power (w)"),
    )  # fmt: skip


def _same_address(one: str, other: str) -> bool:
    return one.strip().lower() == other.strip().lower()


def _text(card: dict[str, Any], *words: str) -> str:
    return next((str(v) for key, v in card.items() if all(word in key.lower() for word in words)), "")


def _field(card: dict[str, Any], *words: str) -> float | None:
    for key, value in card.items():
        if all(word in key.lower() for word in words):
            return _number(str(value).strip("()").lower().removesuffix("mhz"))
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def notes(before: Conditions | None, after: Conditions | None) -> list[str]:
    """Return notes on what in the conditions makes a time doubtful."""
    if before is None or after is None:
        return ["Clocks, temperature and power are not known."]
    remarks = []
    if before.core_mhz and after.core_mhz:
        change = after.core_mhz / before.core_mhz - 1
        if abs(change) > _LEAST_CLOCK_CHANGE:
            remarks.append(
                f"The clock went from {before.core_mhz:.0f} to {after.core_mhz:.0f} MHz meanwhile."
            )
    if reason := after.slowed_by or before.slowed_by:
        remarks.append(f"The device slowed itself down: {reason}.")
    return remarks
