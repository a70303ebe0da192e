"""Runs the study: the candidates that each search strategy needs, over tasks and examples."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from accelopt_agent.evaluation.host_evaluation import HostCost
from accelopt_agent.request import OptimizeRequest
from accelopt_benchmarks.search.landscape import Explored, explored, pair_of, remembered
from accelopt_benchmarks.search.playing import CONTENDERS, MarkedTexts, RunOutcome, play
from accelopt_benchmarks.search.tokens import Tokens, call_tokens, counter, our_tokens, their_tokens
from accelopt_benchmarks.search.world import StudyKernel, World
from accelopt_memory.records import Pair
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.plain import from_plain, to_plain
from nkibench.code import agent_hash

#: A run has come near the best known version when its own takes at most this many times as long.
NEAR = 1 / 0.95


@dataclass(frozen=True)
class StudyPlan:
    """How large the study is.

    ``texts`` bounds the compositions of rules whose costs are found out, and so the world that all search;
    ``candidates`` bounds a run. ``cache`` keeps costs and outcomes: a study that was ended goes on there.
    """

    cache: Path
    seeds: int = 20
    texts: int = 60
    candidates: int = 300


@dataclass(frozen=True)
class KernelResult:
    """What one subject's runs came to.

    ``least_us`` is the best known time, ``base_us`` the original's; ``costs`` is how many versions the world has,
    ``steps`` the rewrites that lead to the best one.
    """

    subject: str
    base_us: float
    least_us: float
    outcomes: tuple[RunOutcome, ...]
    costs: int = 0
    steps: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        """The original is not near the best known version already."""
        return self.base_us > self.least_us * NEAR


async def study(
    chosen_subjects: Sequence[StudyKernel], plan: StudyPlan, tell: Callable[[str], None]
) -> list[KernelResult]:
    """Return every contender on every subject that leaves something to find, ``plan.seeds`` times. Costs are
    real and found out once per text. What the memory says of a subject is made of the best versions of the
    others: who remembers searches a world that holds this too, for the same goal."""
    worlds: dict[str, World] = {}
    explorations: dict[str, Explored] = {}
    pairs: dict[str, Pair | None] = {}
    results = []
    async with AsyncExitStack() as stack:
        for subject in chosen_subjects:
            world = worlds[subject.name] = await stack.enter_async_context(open_world(subject, plan))
            alone = explorations[subject.name] = await explored(world, plan.texts)
            pairs[subject.name] = await pair_of(world, alone)
            tell(f"{subject.name}: the costs of {len(alone.texts)} versions are known")
        for name, world in worlds.items():
            others = [pair for other, pair in pairs.items() if pair is not None and other != name]
            results.append(await one_subject(world, plan, explorations[name], others))
            tell(f"{name}: {_told(results[-1])}")
    return results


async def token_counts(
    chosen_subjects: Sequence[StudyKernel], plan: StudyPlan, data: Path, tell: Callable[[str], None]
) -> list[Tokens]:
    """Return what a candidate costs on the kernels of AccelOpt's checkout ``data``, in our prompts and in its
    own. The digest is that of our kernel for the same task, at its smaller size."""
    count, rows = counter(), []
    for subject in chosen_subjects:
        kernel = next(iter(sorted(data.glob(f"NKIBench/kernels/{subject.name}_[A-Z]*.py"))), None)
        reference = next(iter(sorted(data.glob(f"NKIBench/reference/{subject.name}_[A-Z]*.py"))), None)
        if kernel is None or reference is None:
            continue
        async with open_world(subject, plan) as world:
            base = (await world.baseline()).kernels[0]
        ours = our_tokens(count, data, kernel, reference, base, subject.target)
        theirs = their_tokens(count, data, kernel, reference, base, subject.target)
        if ours is None or theirs is None:
            tell(
                f"{subject.name}: the catalogue has no rewrite for its kernel, so no tokens are counted on it"
            )
            continue
        rows.append(Tokens(subject.name, ours, theirs))
        tell(f"{subject.name}: {sum(ours)} tokens instead of {sum(theirs)}")
    return rows


@asynccontextmanager
async def open_world(subject: StudyKernel, plan: StudyPlan) -> AsyncIterator[World]:
    """Yield the subject's world, its costs kept in the plan's cache."""
    host = LocalHost()
    try:
        file = examine(subject.path, subject.text, project_root=subject.path.parent)
        request = OptimizeRequest(file, subject.target, subject.kernel.name)
        yield World(subject, HostCost(host, request), plan.cache / f"{subject.file_name}.jsonl")
    finally:
        await host.close()


async def one_subject(world: World, plan: StudyPlan, alone: Explored, others: Sequence[Pair]) -> KernelResult:
    """Return all runs on one subject.

    ``alone`` is what rules make of it, ``others`` what was accepted on other kernels.
    """
    measured = (await world.baseline()).kernels[0]
    base = measured.latency.us or float("inf")
    nothing = KernelResult(world.subject.name, base, alone.least_us, (), len(alone.texts), alone.steps)
    if not nothing.open:
        return nothing
    memory = await remembered(world, others)
    beyond = (await explored(world, plan.texts, memory)).texts if memory else frozenset[str]()
    texts = MarkedTexts(world.subject.text, world.subject.kernel.name)
    tokens = call_tokens(measured, world.subject.text, world.subject.target)
    journal = OutcomeJournal(plan.cache / "outcomes" / f"{world.subject.file_name}.jsonl")
    outcomes = []
    for contender in CONTENDERS:
        remembers = memory if contender.memory else []
        open_to = alone.texts | beyond if contender.memory else alone.texts
        world.close(open_to)
        parts = (agent_hash(), contender, plan.candidates, world.subject.target, alone.least_us, sorted(open_to),
                 [c.text for c in remembers])  # fmt: skip
        for seed in range(plan.seeds):
            depends_on = repr((parts, seed)).encode()
            key = hashlib.sha256(depends_on).hexdigest()[:24]
            outcome = journal.get(key)
            if outcome is None:
                outcome = await play(
                    world, contender, seed, goal_us=alone.least_us * NEAR, candidates=plan.candidates, tokens=tokens,
                    texts=texts, memory=remembers,
                )  # fmt: skip
                journal.add(key, outcome)
            outcomes.append(outcome)
    return replace(nothing, outcomes=tuple(outcomes))


class OutcomeJournal:
    """Outcomes as they come, one JSON line each. A line that was cut off is passed over."""

    def __init__(self, path: Path) -> None:
        self._path, self._known = path, dict[str, RunOutcome]()
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        for line in lines:
            try:
                entry = json.loads(line)
                self._known[entry["key"]] = from_plain(RunOutcome, entry["outcome"])
            except (ValueError, KeyError, TypeError):
                continue

    def get(self, key: str) -> RunOutcome | None:
        return self._known.get(key)

    def add(self, key: str, outcome: RunOutcome) -> None:
        """Append a run. Raises OSError when it cannot be written."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps({"key": key, "outcome": to_plain(outcome)}) + "\n")
        self._known[key] = outcome


def _told(result: KernelResult) -> str:
    if not result.open:
        return f"{result.base_us:.4g} to {result.least_us:.4g} us, which leaves nothing to find"
    means = []
    for contender in CONTENDERS:
        mine = [o.candidates for o in result.outcomes if o.contender == contender.name]
        means.append(f"{contender.name} {sum(mine) / max(1, len(mine)):.0f}")
    return f"{result.base_us:.4g} to {result.least_us:.4g} us; candidates: {'; '.join(means)}"
