"""What is asked of a device, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_profiling.trainium.samples import Samples
from accelopt_profiling.trainium.summary import Summary


@dataclass(frozen=True)
class DeviceRequest:
    """Run ``function`` of the file ``kernel`` with ``arguments`` (NumPy arrays and numbers) in ``folder``, which is
    empty and the caller's to remove.

    ``runs`` and ``warmups`` are per round; another round follows while the runs spread by more than ``spread``, at
    most ``rounds``. ``seconds`` bounds each program that is started. ``target`` is trn1, trn2 or trn3.
    """

    kernel: Path
    function: str
    arguments: Sequence[Any]
    folder: Path
    target: str = "trn1"
    warmups: int = 2
    runs: int = 10
    rounds: int = 3
    spread: float = 0.01
    seconds: float = 180.0
    core: int = 0


@dataclass(frozen=True)
class DeviceRun:
    """Outputs, times and the profile of one execution. ``notes`` say what could not be had, such as the profile."""

    outputs: list[Any]
    samples: Samples
    summary: Summary | None
    toolchain: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
