"""Measures whether the memory helps: each kernel is searched knowing others only, on versions whose costs are recorded.

The search is a simulation: of the rewrites of all versions that ran, the next one is tried by a priority, until a
version is within 5 % of the best known. What differs is the priority, or what a simulated proposer is told. The costs
are real (estimates of the time model), found out once; no gate and no model is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.experience.experience import choose_experience, expected_log, item_of, policies
from accelopt_agent.search.strategies.step_expectation import FIRST, LAST
from accelopt_agent.transfer.edit_transfer import transfer
from accelopt_agent.transfer.pair_edit import edit_id, read_edit
from accelopt_benchmarks.memory.similarity import similarity
from accelopt_benchmarks.result import GoalResult
from accelopt_benchmarks.search.landscape import Explored
from accelopt_benchmarks.search.study import NEAR
from accelopt_benchmarks.search.world import World
from accelopt_memory.features import KernelFeatures, kernel_features
from accelopt_memory.outcomes import Outcome, OutcomePrior
from accelopt_memory.records import LikeFailure, Match, Pair, Trap
from accelopt_profiling.measurement import KernelMeasurement

#: A search that does not get there is counted with so many candidates; the best is also looked at after so many.
MOST, BUDGET = 60, 10
#: A simulated proposer draws a rewrite that it is told helped so many times as often as another, one that it is told
#: failed so many times as rarely, and one of the fastest version so many times as often as one of a slower version.
HEEDS, KEEPS_TO_BEST = 8.0, 4.0
#: The share of the other kernels that a seed knows, so that seeds differ.
KNOWN_SHARE = 0.7
#: A rewrite with more than this speedup becomes a pair.
WORTH_KEEPING = 1.04
#: So many rewrites of the catalogue are tried on a version that a carried edit made faster.
FURTHER = 12


@dataclass(frozen=True)
class RecordedRewrite:
    """A rewrite from one version (its text) to another. ``us`` is None where that one failed."""

    before: str
    after: str
    item: str
    us: float | None


@dataclass
class RecordedKernel:
    """A kernel, the versions whose costs are known, and the rewrites between them in the catalogue's order."""

    name: str
    kernel: str
    dialect: str
    target: str
    text: str
    us: float
    least_us: float
    content_hash: str
    features: KernelFeatures
    rewrites: dict[str, list[RecordedRewrite]]
    measured: dict[str, KernelMeasurement]
    outcomes: list[Outcome] = field(default_factory=list)
    #: What the edit of another kernel's pair makes of a version, by that version's text and the pair's id.
    carried: dict[tuple[str, str], RecordedRewrite] = field(default_factory=dict)

    def time_of(self, text: str) -> float | None:
        measurement = self.measured.get(text)
        return None if measurement is None else measurement.latency.us

    def pairs(self, *, person: bool = False) -> list[Pair]:
        """Return the rewrites of the original that are worth keeping, as accepted pairs; as a ``person``'s nothing
        tells which rule made them."""
        pairs = []
        for rewrite in self.rewrites.get(self.text, []):
            if rewrite.us is None or self.us / rewrite.us <= WORTH_KEEPING:
                continue
            slow, fast = self.measured[self.text], self.measured[rewrite.after]
            pairs.append(
                Pair(
                    kernel=self.kernel, dialect=slow.dialect, target=self.target, slow_text=self.text,
                    fast_text=rewrite.after, slow_hash=self.content_hash, fast_hash=f"{rewrite.item} {self.name}",
                    origin="person" if person else rewrite.item, summary=rewrite.item, features=self.features,
                    slow=slow.latency, fast=fast.latency, steps=("person",) if person else (rewrite.item,),
                    bound=slow.bound, edit=edit_id(read_edit(self.text, rewrite.after)),
                )
            )  # fmt: skip
        return pairs

    def note_outcomes(self) -> None:
        """Fill ``outcomes`` with what each rewrite did."""
        for text, edges in self.rewrites.items():
            before, bound = self.time_of(text), self.measured[text].bound
            for edge in edges if before else ():
                ratio = math.log(edge.us / before) if edge.us and before else None
                self.outcomes.append(
                    Outcome(
                        edge.item, self.content_hash, bound=bound, dialect=self.dialect, target=self.target,
                         log_ratio=ratio, rewrite=edge.after, failed=edge.us is None,
                    )
                )  # fmt: skip

    def failures(self) -> list[Trap]:
        """Return the rewrites of the original that failed or cost 4 % or more."""
        failed = [r for r in self.rewrites.get(self.text, []) if r.us is None or r.us > 1.04 * self.us]
        return [
            Trap(
                self.content_hash,
                r.after,
                self.target,
                r.item,
                "slower" if r.us else "failed",
                steps=(r.item,),
            )
            for r in failed
        ]


async def recorded_kernel(world: World, explored: Explored) -> RecordedKernel | None:
    """Return a kernel with the costs of its explored versions. None where none of them is faster."""
    subject = world.subject
    measurements: dict[str, KernelMeasurement] = {}
    for text in sorted(explored.texts | {subject.text}):
        try:
            measurements[text] = await world.cost(text, subject.kernel.name)
        except CostUnavailableError:
            continue
    base = measurements.get(subject.text)
    if base is None or base.latency.us is None or base.latency.us <= explored.least_us * NEAR:
        return None
    kernel = RecordedKernel(
        subject.name,
        subject.kernel.name,
        dialect=subject.kernel.dialect,
        target=subject.target,
        text=subject.text,
        us=base.latency.us,
        least_us=explored.least_us,
        content_hash=subject.kernel.content_hash,
        features=kernel_features(subject.text, subject.kernel.name, base.bound),
        rewrites={},
        measured=measurements,
    )
    for text in measurements:
        if kernel.time_of(text) is not None:
            _record_rewrites(kernel, world, text, explored.texts)
    kernel.note_outcomes()
    return kernel


async def record_carried(kernel: RecordedKernel, world: World, others: Sequence[RecordedKernel]) -> None:
    """Find out what the edits of the pairs of ``others`` make of the kernel, and of what such an edit made faster, and
    what ``FURTHER`` rewrites of the catalogue make of that."""
    pairs = [p for other in others if other.name != kernel.name for p in other.pairs(person=True)]
    level = [kernel.text]
    for _ in range(2):
        faster: set[str] = set()
        for before in level:
            for pair in pairs:
                edited = transfer(pair.slow_text, pair.fast_text, pair.kernel, before, kernel.kernel)
                if edited is None:
                    continue
                us = await _recorded_us(kernel, world, edited.text)
                kernel.carried[before, pair.id] = RecordedRewrite(before, edited.text, item_of(pair), us)
                if us is not None and us < kernel.us / WORTH_KEEPING and edited.text not in kernel.rewrites:
                    faster.add(edited.text)
        level = sorted(faster)
        for text in level:
            further = [c.text for c in world.rewrites(text)][:FURTHER]
            for after in further:
                await _recorded_us(kernel, world, after)
            _record_rewrites(kernel, world, text, frozenset(further))


async def _recorded_us(kernel: RecordedKernel, world: World, text: str) -> float | None:
    """Find out the time of a version and record it. None where it fails."""
    if text not in kernel.measured:
        try:
            kernel.measured[text] = await world.cost(text, kernel.kernel)
        except CostUnavailableError:
            return None
    return kernel.time_of(text)


def _record_rewrites(kernel: RecordedKernel, world: World, text: str, texts: frozenset[str]) -> None:
    """Record those of the catalogue's rewrites of a version that lead to one of ``texts``."""
    edges = [c for c in world.rewrites(text) if c.text in texts]
    kernel.rewrites[text] = [RecordedRewrite(text, c.text, c.origin, kernel.time_of(c.text)) for c in edges]


#: Of all rewrites that may be tried next, the one that is.
Chooser = Callable[[Sequence[RecordedRewrite], str], RecordedRewrite]


@dataclass(frozen=True)
class SimulatedRun:
    """The ``candidates`` that a search needed, or ``MOST``, and the best time after ``BUDGET`` over the least."""

    kernel: str
    arm: str
    seed: int
    candidates: int
    best_ratio: float


def searched(
    kernel: RecordedKernel,
    choose: Chooser,
    allowed: Callable[[str], bool] = lambda item: True,
    extra: Sequence[RecordedRewrite] = (),
) -> tuple[int, float]:
    """Try rewrites whose item is ``allowed``, and ``extra`` ones, until a version is within 5 % of the best; return the
    count, and the best time after ``BUDGET`` tries over the least."""
    times = {kernel.text: kernel.us}
    attempts: set[str] = {kernel.text}
    at_budget, count = kernel.us, 0
    while count < MOST:
        open_ = [r for text in times for r in _rewrites_of(kernel, text, extra) if r.after not in attempts]
        open_ = [r for r in open_ if r in extra or allowed(r.item)]
        if not open_:
            break
        fastest = min(times, key=lambda text: (times[text], text))
        pick = choose(open_, fastest)
        attempts.add(pick.after)
        count += 1
        if pick.us is not None:
            times[pick.after] = pick.us
        if count <= BUDGET:
            at_budget = min(times.values())
        if min(times.values()) <= NEAR * kernel.least_us:
            return count, at_budget / kernel.least_us
    return MOST, at_budget / kernel.least_us


def _rewrites_of(
    kernel: RecordedKernel, text: str, extra: Sequence[RecordedRewrite]
) -> Iterator[RecordedRewrite]:
    yield from (r for r in extra if r.before == text)
    yield from kernel.rewrites.get(text, [])


def by_catalogue(open_: Sequence[RecordedRewrite], fastest: str) -> RecordedRewrite:
    """Choose as by hand: the fastest version first, its rewrites in the catalogue's order."""
    return next((r for r in open_ if r.before == fastest), open_[0])


def by_prior(
    kernel: RecordedKernel, prior: OutcomePrior, expects: Mapping[RecordedRewrite, float] | None = None
) -> Chooser:
    """Choose as the search does: by parent time times the ratio that is expected, which starts at what the place in the
    catalogue lets hope; the first try is the catalogue's. ``expects`` are the ratios of rewrites that the outcomes know
    nothing of."""
    ratios = expects or {}
    hopes = {
        edge: FIRST + (LAST - FIRST) * rank / len(edges)
        for edges in kernel.rewrites.values()
        for rank, edge in enumerate(edges)
    }
    tries: dict[str, list[float]] = {}

    def choose(open_: Sequence[RecordedRewrite], fastest: str) -> RecordedRewrite:
        def expected(rewrite: RecordedRewrite) -> float:
            measured = kernel.measured[rewrite.before]
            ratio = ratios.get(rewrite) or prior.expected_here(
                rewrite.item, measured.bound, kernel.target, hopes[rewrite], tries.get(rewrite.item, ())
            )
            return (measured.latency.us or math.inf) * ratio

        pick = min(open_, key=expected) if tries else by_catalogue(open_, fastest)
        before = kernel.time_of(pick.before)
        tries.setdefault(pick.item, []).append(pick.us / before if pick.us and before else 1.0)
        return pick

    return choose


def by_lot(
    random: Random, helped: frozenset[str] = frozenset(), failed: frozenset[str] = frozenset()
) -> Chooser:
    """Draw by lot. A simulated proposer heeds what it is told ``helped`` and ``failed`` elsewhere."""

    def choose(open_: Sequence[RecordedRewrite], fastest: str) -> RecordedRewrite:
        weights = [
            (HEEDS if r.item in helped else 1 / HEEDS if r.item in failed else 1.0)
            * (KEEPS_TO_BEST if r.before == fastest else 1.0)
            for r in open_
        ]
        return random.choices(open_, weights)[0]

    return choose


def compare(kernels: Sequence[RecordedKernel], seeds: int) -> list[SimulatedRun]:
    """Search each kernel in every way and with every seed, knowing some of the others, never itself."""
    runs: list[SimulatedRun] = []
    for kernel in kernels:
        others = [k for k in kernels if k.name != kernel.name and k.target == kernel.target]
        if not others:
            continue
        for seed in range(seeds):
            random = Random(f"{seed} {kernel.name}")
            peers = random.sample(others, math.ceil(KNOWN_SHARE * len(others)))

            def add(arm: str, result: tuple[int, float], seed: int = seed, name: str = kernel.name) -> None:
                runs.append(SimulatedRun(name, arm, seed, *result))

            prior = OutcomePrior([o for k in peers for o in k.outcomes])
            add("catalogue", searched(kernel, by_catalogue))
            add("random", searched(kernel, by_lot(Random(seed))))
            add("learned", searched(kernel, by_prior(kernel, prior)))
            add("unlearned", searched(kernel, by_prior(kernel, OutcomePrior([]))))
            for policy in policies():
                add(f"told {policy}", searched(kernel, _proposer(kernel, peers, policy, seed)))
            for arm, result in _withheld(kernel, peers, seed):
                add(arm, result)
    return runs


def learning_curve(kernels: Sequence[RecordedKernel], seeds: int) -> dict[int, float]:
    """Return the mean candidates of a proposer that is told of so many other kernels, by our policy."""
    curve: dict[int, list[int]] = {}
    for kernel in kernels:
        others = [k for k in kernels if k.name != kernel.name and k.target == kernel.target]
        for seed in range(seeds):
            order = Random(f"curve {seed} {kernel.name}").sample(others, len(others))
            for count in range(len(order) + 1):
                result = searched(kernel, _proposer(kernel, order[:count], "ours", seed))
                curve.setdefault(count, []).append(result[0])
    return {count: fmean(values) for count, values in sorted(curve.items())}


def _proposer(kernel: RecordedKernel, peers: Sequence[RecordedKernel], policy: str, seed: int) -> Chooser:
    """Return the simulated proposer that is told what ``policy`` chooses of the kernels ``peers``."""
    pairs = [pair for other in peers for pair in other.pairs()]
    near = _near(kernel, pairs)
    failures = [
        LikeFailure(trap, score)
        for other in peers
        if (score := similarity(kernel.features, other.features)) >= 0.3
        for trap in other.failures()
    ]
    prior = OutcomePrior([o for other in peers for o in other.outcomes])
    bound = kernel.measured[kernel.text].bound
    experience = choose_experience(
        policies()[policy], near, pairs, failures, prior, bound, kernel.target, seed
    )
    helped = frozenset(item.item for item in experience.items)
    failed = frozenset(s for failure in experience.failures for s in failure.trap.steps)
    return by_lot(Random(seed), helped, failed - helped)


def _near(kernel: RecordedKernel, pairs: Sequence[Pair]) -> list[Match]:
    matches = [Match(pair, similarity(kernel.features, pair.features)) for pair in pairs]
    return sorted(matches, key=lambda m: (-m.score, m.pair.id))


def _withheld(
    kernel: RecordedKernel, peers: Sequence[RecordedKernel], seed: int
) -> Iterator[tuple[str, tuple[int, float]]]:
    """Search with half of the rules, the edits of the other half remembered as a person's pairs of other kernels; and
    with all rules, to tell how much there is to gain."""
    random = Random(f"withheld {seed}")
    rules = sorted({r.item for k in (kernel, *peers) for edges in k.rewrites.values() for r in edges})
    half = frozenset(random.sample(rules, len(rules) // 2))
    pairs = [p for other in peers for p in other.pairs(person=True) if p.summary not in half]
    prior = OutcomePrior([o for other in peers for o in other.outcomes if o.item in half])
    bound = kernel.measured[kernel.text].bound
    for policy, rules_of in policies().items():
        if rules_of.pick == "nothing":
            pairs_told: list[Pair] = []
        elif rules_of.pick == "expected":
            near = [m for m in _near(kernel, pairs) if m.score > 0]
            near.sort(key=lambda m: m.score * expected_log(m.pair, prior, bound, kernel.target))
            pairs_told = list({item_of(m.pair): m.pair for m in reversed(near)}.values())[::-1]
        else:
            experience = choose_experience(rules_of, [], pairs, [], prior, bound, kernel.target, seed)
            pairs_told = [item.pair for item in experience.items]
        expected = {pair.id: math.exp(expected_log(pair, prior, bound, kernel.target)) for pair in pairs_told}
        extra: dict[RecordedRewrite, float] = {}
        for (_, pair_id), rewrite in kernel.carried.items():
            if pair_id in expected:
                extra[rewrite] = min(expected[pair_id], extra.get(rewrite, math.inf))
        choose = by_prior(kernel, prior, extra)
        yield f"half the rules, {policy}", searched(kernel, choose, half.__contains__, list(extra))


def interval(
    runs: Sequence[SimulatedRun],
    arm: str,
    other: str,
    value: Callable[[SimulatedRun], float],
    draws: int = 1000,
) -> tuple[float, float, float, float]:
    """Return the mean of one arm over another's, each kernel counting as much, its 95 % interval over draws of kernels
    and seeds, and the worst kernel's."""
    cells: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        cells.setdefault(run.kernel, {}).setdefault(run.arm, []).append(value(run))
    logs = {name: math.log(fmean(by[arm]) / fmean(by[other])) for name, by in cells.items()}
    random, ratios = Random(0), []
    for _ in range(draws):
        sample = []
        for name in random.choices(sorted(cells), k=len(cells)):
            mine, theirs = cells[name][arm], cells[name][other]
            mine, theirs = random.choices(mine, k=len(mine)), random.choices(theirs, k=len(theirs))
            sample.append(math.log(fmean(mine) / fmean(theirs)))
        ratios.append(math.exp(fmean(sample)))
    low, high = sorted(ratios)[int(0.025 * draws)], sorted(ratios)[int(0.975 * draws) - 1]
    return math.exp(fmean(logs.values())), low, high, math.exp(max(logs.values()))


#: What is compared: letter, arm, the arm that it is compared with, and the share of its candidates that is the goal.
_COMPARED = (
    ("a", "learned", "catalogue", 1.0),
    ("a", "learned", "unlearned", 1.0),
    ("b", "learned", "random", 1 / 3),
    ("c", "half the rules, ours", "half the rules, none", 1 / 2),
    ("c", "half the rules, ours", "half the rules, fifo-16", 1 / 2),
    ("c", "half the rules, ours", "half the rules, random-16", 1 / 2),
    ("e", "told ours", "told fifo-16", 1.0),
    ("e", "told ours", "told random-16", 1.0),
    ("f", "told ours", "told none", 1.0),
)


def evaluation_rows(runs: Sequence[SimulatedRun], curve: Mapping[int, float]) -> list[GoalResult]:
    """Return each comparison with its interval, and the learning curve as one row."""
    rows = []
    kernels, seeds = len({r.kernel for r in runs}), len({r.seed for r in runs})
    for letter, arm, other, goal in _COMPARED:
        value, low, high, worst = interval(runs, arm, other, lambda r: float(r.candidates))
        best = interval(runs, arm, other, lambda r: r.best_ratio)
        detail = (
            f"95 % {low:.2f} to {high:.2f}; worst kernel {worst:.2f}; best after {BUDGET} {best[0]:.3f} "
            f"({best[1]:.3f} to {best[2]:.3f}); {kernels} kernels, {seeds} seeds"
        )
        met = value <= goal and (letter != "a" or worst <= 1.2)
        rows.append(
            GoalResult(
                f"({letter}) candidates, {arm} over {other}", f"<= {goal:.2g}", value, "x", met, detail
            )
        )
    points = ", ".join(f"{count}: {mean:.1f}" for count, mean in curve.items())
    rows.append(
        GoalResult("learning curve", "", None, "", None, f"mean candidates by kernels known: {points}")
    )
    return rows
