"""What the search needs from outside: a cost for a version of the kernel, and a verdict on it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import FileMeasurement, KernelMeasurement
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.timing.comparing import Comparison


class CostUnknown(Exception):
    """A version of the kernel could not be run. ``lasting`` tells that it never will be: the fault is its own."""

    def __init__(self, code: str, message: str, *, lasting: bool) -> None:
        super().__init__(message)
        self.code, self.lasting = code, lasting


class ToolLost(Exception):
    """The host or the program behind a tool is gone: the run cannot go on. One line for the user."""


class CostModel(Protocol):
    """Raises CostUnknown, or ToolLost when no further question can be answered."""

    async def baseline(self) -> FileMeasurement:
        """Everything about the original file."""

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        """The cheapest measurement of ``kernel`` in ``text`` that can be compared with the baseline's latency."""


class Gate(Protocol):
    async def check(self, text: str, kernel: str) -> tuple[Verdict, Receipt]:
        """Whether ``kernel`` in ``text`` is correct, complete and honest. Raises CostUnknown or ToolLost."""


@runtime_checkable
class SideBySide(Protocol):
    """A gate that can also time a version and the original in one session on a device, in turns of random order."""

    async def compare(self, text: str, kernel: str) -> Comparison | None:
        """The final word on whether it is faster; None where no device times it. Raises CostUnknown or ToolLost."""
