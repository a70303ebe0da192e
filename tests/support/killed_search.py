"""A toy search in a process of its own, for tests that kill it: ``python -m support.killed_search MEMORY PAID``.

Every cost, verdict and answer is paid for by a line in the file PAID before it is handed over.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from accelopt_agent.events import Finished, SuggestionFound
from accelopt_agent.request import Budget
from accelopt_agent.search.node import Node
from accelopt_agent.syntax.fingerprint import file_fingerprint
from accelopt_memory.memory import Memory
from accelopt_profiling.gate.request import Tell, untold
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.receipt import Receipt
from support.toy_search import (
    TEXT,
    ToyCost,
    ToyGate,
    ToyModel,
    ToyProposer,
    faster,
    planned,
    request,
    start,
    us_of,
)

STEPS = 6
START = TEXT.replace("    wide = False\n", "".join(f"    step{k} = 0\n" for k in range(STEPS)))
RULES = {f"s{k}": (f"step{k} = 0", f"step{k} = 1", (12, 0, -30, 8, 15, 4)[k]) for k in range(STEPS)}
RULES |= {
    "raises": ("return x", "raise ValueError", 50),
    "wrong": ("return x", "wrong = 1\n    return x", 40),
}


class Till:
    """Takes the payments."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pay(self, kind: str, what: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{kind} {what}\n")
        print(kind, flush=True)


class Cost(ToyCost):
    till: Till

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        self.till.pay("cost", file_fingerprint(text))
        return await super().cost(text, kernel)


class Gate(ToyGate):
    till: Till

    async def check(self, text: str, kernel: str, tell: Tell = untold) -> tuple[Verdict, Receipt]:
        self.till.pay("verdict", file_fingerprint(text))
        return await super().check(text, kernel, tell)


class Model(ToyModel):
    """Says something new about a version each time, and the same about the same in every run."""

    def __init__(self, till: Till) -> None:
        self._till = till

    def write(self, node: Node) -> str:
        count = node.asked.get("model", 0)
        self._till.pay("answer", f"{file_fingerprint(node.text)}/{count}")
        return faster(node.text, 5).replace("return x", f"hint{count} = {count + 1}\n    return x")


async def main(memory: Path, paid: Path) -> None:
    till = Till(paid)
    cost, gate = Cost(START), Gate()
    cost.till = gate.till = till
    search_request = replace(
        planned(request(START, Budget(candidates=60, seconds=None)), depth=8), resume=True
    )
    with Memory.open(memory) as database:
        async for event in start([ToyProposer(RULES), Model(till)], database, search_request, cost, gate):
            if isinstance(event, SuggestionFound):
                print("best", us_of(event.suggestion.text), flush=True)
            elif isinstance(event, Finished):
                print("finished", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
