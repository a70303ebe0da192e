"""The interfaces through which the search gets costs and verdicts, and how they fail."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from accelopt_profiling.gate.request import Tell, untold
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import FileMeasurement, KernelMeasurement
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.timing.statistics import TimeComparison


class CostUnavailableError(Exception):
    """A version of the kernel could not be run.

    ``lasting`` means that it never will be: the fault is its own. ``code`` is that of a finding.
    """

    def __init__(self, code: str, message: str, *, lasting: bool) -> None:
        super().__init__(message)
        self.code, self.lasting = code, lasting


class EvaluatorLostError(Exception):
    """The host or the program behind an evaluator is gone, so the run must end. The message is one line."""


class CostEvaluator(Protocol):
    """Measures versions of a file.

    Raises:
        CostUnavailableError: this version has no cost.
        EvaluatorLostError: no further version can be measured.
    """

    async def baseline(self) -> FileMeasurement:
        """Measure the original file in full."""

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        """Measure ``kernel`` in ``text`` as cheaply as allows a comparison with the baseline's latency."""

    def way(self, kernel: str) -> Any:
        """Return how versions of ``kernel`` are measured since the baseline was, as plain data."""


class GateEvaluator(Protocol):
    """Decides whether versions are right. Raises as ``CostEvaluator``."""

    async def check(self, text: str, kernel: str, tell: Tell = untold) -> tuple[Verdict, Receipt]:
        """Check that ``kernel`` in ``text`` is correct, complete and honest.

        ``tell`` gets each step of the check in words when it begins.
        """


@runtime_checkable
class SideBySideTimer(Protocol):
    """A gate that can also time a version and the original in one session on a device, in turns of random order.

    Raises as ``CostEvaluator``.
    """

    async def compare(self, text: str, kernel: str) -> TimeComparison | None:
        """Decide whether the version is faster than the original. None where no device can time them."""
