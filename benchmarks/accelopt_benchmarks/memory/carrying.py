"""Carries the edit of each pair over to the kernels of the corpus and asks the gate about the result."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.evaluation.host_evaluation import HostCost, HostGate
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.transfer.edit_transfer import reproduces, transfer
from accelopt_benchmarks.memory.corpus import CorpusPair, OtherKernel
from accelopt_benchmarks.result import GoalResult
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import Host

#: The share of kernels of each relation on which the gate must accept what the edit makes of them.
GOALS = {"own": 1.0, "renamed": 0.9, "reshaped": 0.9, "other operator": 0.6}


@dataclass(frozen=True)
class CarriedEdit:
    """One edit on one kernel.

    ``verdict`` is "accepted", the gate's first reason, or why there was nothing to ask it about; ``ratio`` is the time
    after over the time before as estimated, None where one is not known. ``ms`` is the time that carrying it over took.
    """

    pair: str
    kernel: str
    relation: str
    verdict: str
    fit: float = 0.0
    whole: bool = False
    ratio: float | None = None
    ms: float = 0.0

    @property
    def accepted(self) -> bool:
        return self.verdict == "accepted"


async def carry_all(pairs: Sequence[CorpusPair], host: Host) -> AsyncIterator[CarriedEdit]:
    """Yield every edit on every kernel that belongs to its pair."""
    for pair in pairs:
        for other in (*pair.clones(), *pair.others):
            yield await carry(pair, other, host)


async def carry(pair: CorpusPair, other: OtherKernel, host: Host) -> CarriedEdit:
    """Carry the pair's edit over to one kernel, and ask the gate about the result."""
    begin = time.perf_counter()
    edit = transfer(pair.slow, pair.fast, pair.kernel, other.text, other.kernel)
    ms = 1000 * (time.perf_counter() - begin)
    if edit is None:
        return CarriedEdit(pair.name, other.name, other.relation, "does not fit", ms=ms)
    if other.relation == "own" and not reproduces(pair.slow, pair.fast, pair.kernel):
        return CarriedEdit(pair.name, other.name, other.relation, "is not its own fast side", edit.fit, ms=ms)
    file = examine(pair.path, other.text, project_root=pair.path.parent)
    request = OptimizeRequest(file, pair.target)
    try:
        verdict, _ = await HostGate(host, request).check(edit.text, other.kernel)
    except CostUnavailableError as error:
        return CarriedEdit(pair.name, other.name, other.relation, str(error), edit.fit, edit.whole, ms=ms)
    if not verdict.accepted:
        reason = verdict.reasons[0] if verdict.reasons else None
        why = f"{reason.code}: {reason.message}" if reason else "refused"
        return CarriedEdit(pair.name, other.name, other.relation, why, edit.fit, edit.whole, ms=ms)
    ratio = await _ratio(HostCost(host, request), other, edit.text)
    return CarriedEdit(
        pair.name,
        other.name,
        relation=other.relation,
        verdict="accepted",
        fit=edit.fit,
        whole=edit.whole,
        ratio=ratio,
        ms=ms,
    )


async def _ratio(cost: HostCost, other: OtherKernel, text: str) -> float | None:
    try:
        before = (await cost.cost(other.text, other.kernel)).latency.us
        after = (await cost.cost(text, other.kernel)).latency.us
    except CostUnavailableError:
        return None
    return after / before if before and after else None


def rows(carried: Sequence[CarriedEdit]) -> list[GoalResult]:
    """Return for each relation the share of kernels that the gate accepted the result for."""
    groups: dict[str, list[CarriedEdit]] = defaultdict(list)
    for one in carried:
        groups[one.relation].append(one)
    results = []
    for relation, goal in GOALS.items():
        mine = groups[relation]
        if not mine:
            continue
        good = sum(one.accepted for one in mine)
        results.append(
            GoalResult(
                f"edits that act: {relation}", f">= {100 * goal:.0f} %", 100 * good / len(mine), "%",
                good >= goal * len(mine), f"{good} of {len(mine)} accepted by the gate",
            )
        )  # fmt: skip
    return results
