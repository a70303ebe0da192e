"""Validates versions: the gate's verdict, and a timing beside the original where a device is there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from accelopt_agent.evaluation.evaluators import CostUnavailableError, GateEvaluator, SideBySideTimer
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.recorder import Recorder
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import LIMITS
from accelopt_profiling.timing.statistics import TimeComparison


@dataclass(frozen=True)
class ValidationResult:
    """The gate's ``verdict``, and the ``comparison`` with the original in one session on a device; ``untimed`` is why
    that failed. Both are None where there is no device."""

    verdict: Verdict
    comparison: TimeComparison | None = None
    untimed: CostUnavailableError | None = None

    @property
    def not_offered(self) -> str:
        """Return why an accepted version is not offered, as a sentence. Empty where it is."""
        if self.untimed is not None:
            return f"A candidate could not be timed beside the original, so it is not offered: {self.untimed}"
        side = self.comparison
        if side is None or side.answer == "faster":
            return ""
        span = f"{side.low:.3f} to {side.high:.3f} times as fast in {side.pairs} rounds"
        return f"A candidate is {side.answer} beside the original in one session ({span}); it is not offered."


class CandidateValidator:
    """Asks the gate about each version once."""

    def __init__(self, gate: GateEvaluator, recorder: Recorder, meter: Meter) -> None:
        self._gate, self._recorder, self._meter = gate, recorder, meter

    async def validate(self, node: Node) -> ValidationResult:
        """Get the gate's verdict on ``node``.

        Time an accepted one that seems faster beside the original, in one session, where a device can.

        Raises:
            CostUnavailableError: the gate gave no verdict.
            EvaluatorLostError: the host is gone.
        """
        about = node.text, node.kernel.name
        verdict, _ = await self._meter.paid(
            "verdict",
            Verdict,
            about,
            [],
            lambda: self._check(node),
            lambda verdict: not any(reason.code in LIMITS for reason in verdict.reasons),
        )
        if not (verdict.accepted and node.clearly_faster and isinstance(self._gate, SideBySideTimer)):
            return ValidationResult(verdict)
        try:
            return ValidationResult(verdict, await self._gate.compare(node.text, node.kernel.name))
        except CostUnavailableError as error:
            return ValidationResult(verdict, untimed=error)

    async def _check(self, node: Node) -> Verdict:
        """Run the gate and store its receipt before the verdict is used."""
        if node.candidate is not None:
            self._meter.tell(f"checking that it is right: {node.candidate.last_step}")
        verdict, receipt = await self._gate.check(node.text, node.kernel.name)
        self._meter.judged += 1
        await self._recorder.receipt(receipt)
        return replace(verdict, receipt=verdict.receipt or receipt.id)
