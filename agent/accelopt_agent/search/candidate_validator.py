"""Proofs: what the gate says of a version, and what a device says of it beside the original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from accelopt_agent.evaluation.evaluators import CostUnavailableError, GateEvaluator, SideBySideTimer
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.recorder import Recorder
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.timing.comparing import Comparison


@dataclass(frozen=True)
class ValidationResult:
    """``verdict`` is the gate's. ``comparison`` is with the original in one session on a device, ``untimed`` why there
    is none though a device is there; neither where none is.
    """

    verdict: Verdict
    comparison: Comparison | None = None
    untimed: CostUnavailableError | None = None

    @property
    def not_offered(self) -> str:
        """Why a version that the gate has accepted is not offered all the same, as a sentence; empty where it is."""
        if self.untimed is not None:
            return f"A candidate could not be timed beside the original, so it is not offered: {self.untimed}"
        side = self.comparison
        if side is None or side.answer == "faster":
            return ""
        span = f"{side.low:.3f} to {side.high:.3f} times as fast in {side.pairs} rounds"
        return f"A candidate is {side.answer} beside the original in one session ({span}); it is not offered."


class CandidateValidator:
    """Asks the gate, once for a version. ``known`` are the verdicts of an interrupted run by fingerprint."""

    def __init__(
        self, gate: GateEvaluator, recorder: Recorder, meter: Meter, known: Mapping[str, Verdict]
    ) -> None:
        self._gate, self._recorder, self._meter, self._known = gate, recorder, meter, known

    def knows(self, node: Node) -> bool:
        """Whether the gate has been asked about ``node`` in the interrupted run."""
        return node.fingerprint in self._known

    async def judge(self, node: Node) -> ValidationResult:
        """What the gate says about ``node``; of one that it accepts and that seems faster also what both versions take
        in one session, where a device times them.

        Raises:
            CostUnavailableError: the gate gave no verdict.
            EvaluatorLostError: the host is gone.
        """
        verdict = self._known.get(node.fingerprint) or await self._checked(node)
        if not (verdict.accepted and node.clearly_faster and isinstance(self._gate, SideBySideTimer)):
            return ValidationResult(verdict)
        try:
            return ValidationResult(verdict, await self._gate.compare(node.text, node.kernel.name))
        except CostUnavailableError as error:
            return ValidationResult(verdict, untimed=error)

    async def _checked(self, node: Node) -> Verdict:
        """What the gate says; its evidence is in the memory before anything is told."""
        verdict, receipt = await self._gate.check(node.text, node.kernel.name)
        self._meter.judged += 1
        await self._recorder.receipt(receipt)
        return replace(verdict, receipt=verdict.receipt or receipt.id)
