"""A small world for the search: kernels whose time is written in them, and a gate that believes what they say."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.events import Event
from accelopt_agent.optimize import drive
from accelopt_agent.request import Budget, OptimizeRequest
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.paid import PaidWork
from accelopt_agent.search.proposer import Proposer, ProposerError
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.gate.request import Tell, untold
from accelopt_profiling.gate.verdict import Reason, Verdict
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import (
    Correctness,
    FileMeasurement,
    KernelMeasurement,
    Latency,
    Launchability,
)
from accelopt_profiling.quantity import Known
from accelopt_profiling.receipt import Receipt

TEXT = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    time_us = 100
    wide = False
    fused = False
    return x


def other():
    return 1
"""


def us_of(text: str) -> float:
    """The time that the text says it takes."""
    match = re.search(r"time_us = (\d+)", text)
    assert match
    return float(match.group(1))


def faster(text: str, percent: int) -> str:
    return re.sub(r"time_us = \d+", f"time_us = {int(us_of(text)) * (100 - percent) // 100}", text)


def measurement(text: str, name: str = "kernel", correct: bool = True) -> KernelMeasurement:
    us = us_of(text)
    kernel = next(k for k in find_kernels(text).kernels if k.name == name)
    latency = Latency(us, us * 0.75, us * 1.33, Known.ESTIMATED)
    status = Correctness("passed" if correct else "failed", "" if correct else "row 3 is off")
    return KernelMeasurement(
        name, kernel.line, "nki", "trn1", "toy", status, latency, content_hash=kernel.content_hash
    )


class ToyCost:
    """Texts with ``raise`` cannot be run. ``seen`` lists what was asked about; ``hang`` holds an answer back."""

    def __init__(self, text: str = TEXT, hang: asyncio.Event | None = None, correct: bool = True) -> None:
        self.text, self.hang, self.correct = text, hang, correct
        self.seen: list[str] = []
        self.running = 0
        self.cancelled = 0
        self.busy = asyncio.Event()  # two questions at once

    async def baseline(self) -> FileMeasurement:
        return FileMeasurement("k.py", [measurement(self.text, correct=self.correct)], complete=True)

    def way(self, kernel: str) -> Any:
        return None

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        self.seen.append(text)
        self.running += 1
        if self.running == 2:
            self.busy.set()
        try:
            if self.hang is not None:
                await self.hang.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        if "raise" in text:
            raise CostUnavailableError("kernel-raised", "The kernel raised ValueError.", lasting=True)
        return measurement(text, kernel)


LAUNCHABLE = Launchability("yes", Known.EXECUTED)


class ToyGate:
    """Refuses texts that say they are wrong."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def check(self, text: str, kernel: str, tell: Tell = untold) -> tuple[Verdict, Receipt]:
        self.seen.append(text)
        tell("comparing outputs")
        receipt = Receipt("gate", {"text": text})
        if "wrong" in text:
            return Verdict(False, [Reason("wrong-result", "element 7 is off")]), receipt
        return Verdict(True, [], [{"name": "normal"}], receipt.id, launchable=LAUNCHABLE), receipt


class ToyProposer:
    """Rules as ``name: (text to find, text instead, percent faster)``."""

    def __init__(
        self, rules: dict[str, tuple[str, str, int]], name: str = "rules", kind: str = "rule"
    ) -> None:
        self.name, self._rules, self._kind = name, rules, kind
        self.asked = 0

    async def propose(self, node: Node) -> list[Candidate]:
        self.asked += 1
        return [
            Candidate(
                "kernel", faster(node.text.replace(old, new), percent), f"{self._kind}:{rule}", f"do {rule}"
            )
            for rule, (old, new, percent) in self._rules.items()
            if old in node.text
        ]


class ToyModel(ABC):
    """A paid proposer that writes one version for each question; what it wrote is kept, as a team's answers are."""

    name = "model"

    #: Set by ``start`` to that of the run.
    paid = PaidWork()

    @abstractmethod
    def write(self, node: Node) -> str | None:
        """Return a version of the file; None for an answer that cannot be read."""

    async def propose(self, node: Node) -> list[Candidate]:
        count = node.asked.get("model", 0)

        async def written() -> str:
            return self.write(node) or ""

        text, _ = await self.paid("answer", str, (node.text, "kernel"), [count], written)
        if not text:
            raise ProposerError("The answer cannot be read.")
        return [Candidate("kernel", text, "model:toy", "write it in another way")]


WIDE = {"wide": ("wide = False", "wide = True", 30)}
FUSED = {"fused": ("fused = False", "fused = True", 20)}
SLOW = {"slow": ("return x", "return x + 0", -50)}
TINY = {"tiny": ("return x", "return +x", 3)}
WRONG = {"wrong": ("return x", "wrong = 1\n    return x", 60)}
RAISES = {"raises": ("return x", "raise ValueError", 60)}


#: How long a test waits for what must come, in seconds: a busy machine may take long.
PATIENCE = 60.0


def request(text: str = TEXT, budget: Budget | None = None, **options: int) -> OptimizeRequest:
    budget = budget or Budget(seconds=600.0)
    return OptimizeRequest(examine(Path("/k.py"), text), "trn1", budget=budget, **options)  # type: ignore[arg-type]


def planned(original: OptimizeRequest, **changes: Any) -> OptimizeRequest:
    """Return the request with another plan, of the same depth unless that is among the ``changes``."""
    return replace(original, plan=replace(original.plan, **{"depth": original.plan.composed, **changes}))


def start(
    proposers: Sequence[Proposer],
    memory: Memory | None = None,
    search_request: OptimizeRequest | None = None,
    cost: ToyCost | None = None,
    gate: ToyGate | None = None,
) -> AsyncIterator[Event]:
    search_request = search_request or request()

    def make(meter: Meter) -> Sequence[Proposer]:
        for proposer in proposers:
            if isinstance(proposer, ToyModel):
                proposer.paid = meter.paid
        return proposers

    return drive(search_request, cost or ToyCost(search_request.text), gate or ToyGate(), memory, "toy", make)


async def play(
    proposers: Sequence[Proposer],
    memory: Memory | None = None,
    search_request: OptimizeRequest | None = None,
    cost: ToyCost | None = None,
    gate: ToyGate | None = None,
) -> list[Event]:
    """All events of a whole run."""
    return [event async for event in start(proposers, memory, search_request, cost, gate)]
