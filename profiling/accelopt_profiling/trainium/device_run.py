"""The request for a run on a device, its times in rounds, and its result."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import Latency
from accelopt_profiling.problems.problem import Call
from accelopt_profiling.quantity import Known
from accelopt_profiling.trainium.summary import ProfileSummary
from accelopt_profiling.trainium.tools import DeviceError


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


#: What of a call a device run honours, or what does not concern it.
_HONOURED = frozenset({"function", "own_check"})


def kernel_alone(call: Call, kernels: Iterable[Kernel]) -> Kernel:
    """Return the kernel that ``call`` runs, to be run on a device by itself with the call's arguments by position.

    Raises:
        DeviceError: the call is another function's, or asks for more than that: nothing of a call is left out.
    """
    kernel = next((k for k in kernels if k.name == call.function), None)
    plain = Call(call.function)
    more = [
        field.name
        for field in fields(call)
        if field.name not in _HONOURED and getattr(call, field.name) != getattr(plain, field.name)
    ]
    if kernel is None:
        message = f"{call.function} is no NKI kernel of the file, so it cannot be run on the device alone."
        raise DeviceError("unsupported", message)
    if more:
        extras = ", ".join(f"`{name}`" for name in more if name != "style") or f"the style {call.style}"
        alone = "on the device a kernel is run alone, with arguments by position"
        message = f"The call of {call.function} has {extras}; {alone}."
        raise DeviceError("unsupported", message)
    return kernel


@dataclass(frozen=True)
class Samples:
    """Execution times of ``runs`` runs in ms."""

    mean_ms: float
    min_ms: float
    max_ms: float
    runs: int

    @property
    def spread(self) -> float:
        """(largest - smallest) / smallest, as AccelOpt has it."""
        return (self.max_ms - self.min_ms) / self.min_ms

    @property
    def latency(self) -> Latency:
        """The mean, with the fastest and the slowest run as its interval."""
        return Latency(self.mean_ms * 1e3, self.min_ms * 1e3, self.max_ms * 1e3, Known.MEASURED)


def samples_of(ms: Sequence[float]) -> Samples:
    """Summarize the times of single runs in ms, at least one."""
    return Samples(statistics.fmean(ms), min(ms), max(ms), len(ms))


def steadiest(measure: Callable[[], Samples], spread: float, rounds: int) -> Samples:
    """Measure rounds until one spreads by no more than ``spread``, at most ``rounds``; return the steadiest.

    Every round is measured anew. (AccelOpt's retry compared old statistics until 2026-06-07.)
    """
    measured: list[Samples] = []
    while len(measured) < max(1, rounds):
        measured.append(measure())
        if measured[-1].spread <= spread:
            break
    return min(measured, key=lambda s: s.spread)


@dataclass(frozen=True)
class DeviceRun:
    """Outputs, times and the profile of one execution.

    ``notes`` name what is missing, such as the profile.
    """

    outputs: list[Any]
    samples: Samples
    summary: ProfileSummary | None
    toolchain: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
