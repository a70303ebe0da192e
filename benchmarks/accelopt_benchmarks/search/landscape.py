"""Explores a kernel's world: the costs of compositions of rules, and the pairs that the memory would hold of it."""

from __future__ import annotations

import heapq
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.search.node import Node
from accelopt_agent.transfer.proposer import MemoryProposer
from accelopt_benchmarks.search.world import World
from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement


@dataclass(frozen=True)
class Explored:
    """``texts`` are all versions whose cost is known.

    ``best`` is the fastest of them, ``steps`` and ``summary`` tell the rewrites that lead to it (empty for the
    original).
    """

    texts: frozenset[str]
    best: str
    least_us: float
    steps: tuple[str, ...] = ()
    summary: str = ""


@dataclass(frozen=True)
class _Version:
    text: str
    us: float
    steps: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    def after(self, candidate: Candidate, us: float) -> _Version:
        steps = candidate.steps or (candidate.origin,)
        return _Version(candidate.text, us, (*self.steps, *steps), (*self.said, candidate.summary))


async def explored(world: World, texts: int, memory: Sequence[Candidate] = ()) -> Explored:
    """Find out the costs of up to ``texts`` rule compositions, building on the fastest first, and those of what the
    ``memory`` proposes, which is built upon in the same way."""
    base = (await world.baseline()).kernels[0]
    original = _Version(world.subject.text, math.inf if base.latency.us is None else base.latency.us)
    await world.cost(original.text, world.subject.kernel.name)
    best, heap, visited = original, [(original.us, 0, original)], {original.text}
    todo = [(original, candidate) for candidate in memory]
    most = texts + len(memory) + 1
    while todo or heap:
        if not todo:
            version = heapq.heappop(heap)[2]
            todo = [(version, candidate) for candidate in world.rewrites(version.text)]
        for version, candidate in todo:
            if candidate.text in visited or len(visited) >= most:
                continue
            visited.add(candidate.text)
            us = await _right_us(world, candidate)
            if us is not None:
                successor = version.after(candidate, us)
                best = min(best, successor, key=lambda v: v.us)
                heapq.heappush(heap, (us, len(visited), successor))
        todo = []
        if len(visited) >= most:
            break
    summary = "; then: ".join(s.rstrip(".") for s in best.said)
    return Explored(frozenset(visited), best.text, best.us, best.steps, summary)


async def remembered(world: World, pairs: Sequence[Pair]) -> list[Candidate]:
    """Return what the memory proposes for the kernel of ``world`` when ``pairs`` were accepted before."""
    subject = world.subject
    root = Node(subject.text, subject.kernel, (await world.baseline()).kernels[0])
    with tempfile.TemporaryDirectory(prefix="accelopt-study-") as folder:
        memory = Memory.open(Path(folder) / "memory.db")
        try:
            for pair in pairs:
                if pair.target == subject.target:
                    memory.add_pair(pair)
            return await MemoryProposer(memory).propose(root)
        finally:
            memory.close()


async def _right_us(world: World, candidate: Candidate) -> float | None:
    """Return the time of a version that is right. None of any other."""
    try:
        measurement = await world.cost(candidate.text, candidate.kernel)
    except CostUnavailableError:
        return None
    return measurement.latency.us


async def pair_of(world: World, exploration: Explored) -> Pair | None:
    """Return the fastest version that was explored, as a pair that somebody accepted; None where that is the
    original."""
    if not exploration.steps:
        return None
    subject = world.subject
    kernel, slow = subject.kernel, (await world.baseline()).kernels[0]
    fast: KernelMeasurement = await world.cost(exploration.best, kernel.name)
    hashes = {k.name: k.content_hash for k in find_kernels(exploration.best).kernels}
    return Pair(
        kernel=kernel.name, dialect=kernel.dialect, target=subject.target, slow_text=subject.text,
        fast_text=exploration.best,
        slow_hash=kernel.content_hash, fast_hash=hashes[kernel.name], origin=exploration.steps[-1],
        summary=exploration.summary,
        features=kernel_features(subject.text, kernel.name, slow.bound), slow=slow.latency,
        fast=fast.latency, steps=exploration.steps, bound=slow.bound,
    )  # fmt: skip
