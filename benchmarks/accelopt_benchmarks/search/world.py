"""Keeps one kernel's rewrites and their real costs, each evaluated once and stored by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.evaluators import CostEvaluator, CostUnavailableError
from accelopt_benchmarks.search import marks
from accelopt_profiling.gate.request import Tell, untold
from accelopt_profiling.gate.verdict import Reason, Verdict
from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.measurement import FileMeasurement, KernelMeasurement
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.receipt import Receipt


@dataclass(frozen=True)
class StudyKernel:
    """The kernel to be made faster: the first launched one of the file ``path`` (text: ``text``). ``case`` names the
    sizes of its inputs where the text does not."""

    name: str
    path: Path
    text: str
    target: str
    case: str = ""

    @property
    def file_name(self) -> str:
        return f"{self.name}_{self.case}" if self.case else self.name

    @property
    def kernel(self) -> Kernel:
        return find_kernels(self.text).launched[0]


class World:
    """Costs and rewrites of ``subject``.

    The real ``cost`` is asked once per text without marks; the answers are kept in the file ``kept`` (JSON lines), so
    that another run with the same texts asks nothing.

    It is the cost model and the gate of a simulated search: a text with a mark of a broken edit fails as the mark
    says, any other costs what the text without marks costs and is right if the profiler found it so. Once it is
    closed, it is a finite world that is the same for all who search it, whatever the file holds besides.
    """

    def __init__(self, subject: StudyKernel, cost: CostEvaluator, log: Path | None = None) -> None:
        self.subject, self._cost, self._kept = subject, cost, log
        self._known: dict[str, KernelMeasurement | CostUnavailableError] = {}
        self._rewrites: dict[str, tuple[Candidate, ...]] = {}
        self._base: KernelMeasurement | None = None
        self._open_to: frozenset[str] | None = None
        if log is not None and log.is_file():
            for line in log.read_text("utf-8").splitlines():
                entry = json.loads(line)
                self._known[entry["key"]] = _known(entry)

    def __len__(self) -> int:
        """Return how many different texts have a cost."""
        return len(self._known)

    async def baseline(self) -> FileMeasurement:
        subject = self.subject
        if self._base is None:
            key = _key(subject, "baseline")
            measurement = self._known.get(key)
            if not isinstance(measurement, KernelMeasurement):
                measured = await self._cost.baseline()
                measurement = next(m for m in measured.kernels if m.name == subject.kernel.name)
                self._keep(key, measurement, whole=True)
            self._base = measurement
        return FileMeasurement(str(subject.path), [self._base], complete=True)

    def way(self, kernel: str) -> Any:
        return None

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        plain = marks.plain(text)
        if marks.fault_of(text) == "crash":
            raise CostUnavailableError("kernel-raised", "The kernel raised NameError.", lasting=False)
        measurement = await self._of(plain)
        if marks.fault_of(text) == "wrong":
            correctness = replace(measurement.correctness, status="failed", detail="its result is wrong")
            return replace(measurement, correctness=correctness)
        return measurement

    async def check(self, text: str, kernel: str, tell: Tell = untold) -> tuple[Verdict, Receipt]:
        measurement = await self.cost(text, kernel)
        receipt = Receipt("gate", {"text": text})
        if measurement.correctness.status == "failed":
            return Verdict(False, [Reason("wrong-result", measurement.correctness.detail)]), receipt
        return Verdict(True, [], [], receipt.id), receipt

    def rewrites(self, text: str) -> Sequence[Candidate]:
        """Return what the rule catalogue makes of a text without marks, most promising first."""
        rewrites = self._rewrites.get(text)
        if rewrites is None:
            from accelopt_agent.rules.catalogue import proposals

            kernel = next((k for k in find_kernels(text).kernels if k.name == self.subject.kernel.name), None)
            measured = self._known.get(_key(self.subject, text))
            baseline = measured if isinstance(measured, KernelMeasurement) else self._base
            rewrites = tuple(proposals(text, kernel, baseline, self.subject.target)) if kernel else ()
            self._rewrites[text] = rewrites
        return rewrites if self._open_to is None else [c for c in rewrites if c.text in self._open_to]

    def close(self, texts: Iterable[str]) -> None:
        """Tell from now on only of rewrites that lead to one of ``texts``, whatever else has a known cost."""
        self._open_to = frozenset(texts)

    async def _of(self, plain: str) -> KernelMeasurement:
        key = _key(self.subject, plain)
        if key not in self._known:
            try:
                measurement = await self._cost.cost(plain, self.subject.kernel.name)
            except CostUnavailableError as error:
                self._keep(key, error)
            else:
                self._keep(key, measurement)
        outcome = self._known[key]
        if isinstance(outcome, CostUnavailableError):
            raise CostUnavailableError(outcome.code, str(outcome), lasting=outcome.lasting)
        return outcome

    def _keep(
        self, key: str, outcome: KernelMeasurement | CostUnavailableError, *, whole: bool = False
    ) -> None:
        entry: dict[str, Any] = {"key": key}
        if isinstance(outcome, CostUnavailableError):
            entry["unknown"] = [outcome.code, str(outcome), outcome.lasting]
        else:
            outcome = outcome if whole else replace(outcome, lines=[], findings=[])
            entry["measurement"] = to_plain(outcome)
        self._known[key] = outcome
        if self._kept is not None:
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            with self._kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def _key(subject: StudyKernel, text: str) -> str:
    parts = "\0".join((subject.target, subject.text, text))
    return hashlib.sha256(parts.encode()).hexdigest()[:24]


def _known(entry: dict[str, Any]) -> KernelMeasurement | CostUnavailableError:
    if "unknown" in entry:
        code, message, lasting = entry["unknown"]
        return CostUnavailableError(code, message, lasting=lasting)
    return from_plain(KernelMeasurement, entry["measurement"])
