"""Which search strategy needs how many candidates: the study with a simulated proposer, over tasks and examples."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from accelopt_agent.profiled import ProfiledCost
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.simulated.proposer import CallTokens
from accelopt_agent.simulated.study import (
    CONTENDERS,
    Contender,
    Interval,
    MarkedTexts,
    Outcome,
    explored,
    mean_of,
    play,
    ratio_of,
)
from accelopt_agent.simulated.world import Subject, World
from accelopt_lsp.bench.row import Row
from accelopt_lsp.bench.tokens import Tokens, call_tokens, counter, our_tokens, their_tokens
from accelopt_profiling.hosts.local import LocalHost
from nkibench.task import Task, chosen

#: A run has come near the best known version when its own takes at most this many times as long.
NEAR = 1 / 0.95

#: The Triton examples, and the goals of hybrid: its share of the candidates that the others need.
TRITON = ("triton_add.py", "triton_softmax.py")
GOALS = {"beam (AccelOpt: B6 N12 K2 T16)": 1 / 3, "tree (STARK)": 1 / 2}


@dataclass(frozen=True)
class Plan:
    """How large the study is. ``texts`` bounds the compositions of rules whose costs are found out, and so the world
    that all search; ``candidates`` bounds a run; ``cache`` keeps costs from one study to the next."""

    seeds: int = 20
    texts: int = 40
    candidates: int = 400
    cache: Path | None = None


@dataclass(frozen=True)
class Found:
    """What one subject's runs came to. ``least_us`` is the best known time, ``base_us`` the original's."""

    subject: str
    base_us: float
    least_us: float
    outcomes: tuple[Outcome, ...]

    @property
    def open(self) -> bool:
        """The original is not near the best known version already."""
        return self.base_us > self.least_us * NEAR


def subjects(folder: Path, examples: Path, names: Sequence[str]) -> list[Subject]:
    """The tasks of NKIBench at the sizes of their largest further shape, written to ``folder``, and the Triton
    examples; only those in ``names``, if there are any.

    Raises:
        ValueError: there is no task or example of that name.
    """
    triton = [n for n in TRITON if not names or n.removesuffix(".py") in names]
    tasks = [n for n in names if f"{n}.py" not in TRITON]
    found = [_smaller(task, folder) for task in (chosen(tasks) if tasks or not names else [])]
    for name in triton:
        path = examples / name
        found.append(Subject(path.stem, path, path.read_text("utf-8"), "h100"))
    return found


def _smaller(task: Task, folder: Path) -> Subject:
    """The task with the sizes of its largest further shape, which the emulator runs in a second or so."""
    place = folder / task.name
    place.mkdir(parents=True, exist_ok=True)
    reference = task.reference.read_text("utf-8")
    shapes: list[dict[str, int]] = json.loads(_shapes(reference))
    sizes = max(shapes, key=lambda s: math.prod(s.values()))
    for name, value in sizes.items():
        reference = re.sub(rf"^{name} = \d+$", f"{name} = {value}", reference, flags=re.MULTILINE)
    (place / "reference.py").write_text(reference, "utf-8")
    kernel = task.kernel("beta1").read_text("utf-8")
    path = place / "kernel_beta1.py"
    path.write_text(kernel, "utf-8")
    return Subject(task.name, path, kernel, "trn1")


def _shapes(reference: str) -> str:
    found = re.search(r"^shapes = (\[.*?^\])", reference, re.MULTILINE | re.DOTALL)
    return re.sub(r",\s*\]", "]", found[1]) if found else "[{}]"


async def study(chosen_subjects: Sequence[Subject], plan: Plan, tell: Callable[[str], None]) -> list[Found]:
    """Every contender on every subject, ``plan.seeds`` times. Costs are real and found out once per text."""
    found = []
    for subject in chosen_subjects:
        async with _world(subject, plan) as world:
            base = (await world.baseline()).kernels[0]
            found.append(await _one(world, plan, call_tokens(base, subject.text, subject.target)))
            tell(f"{subject.name}: {_told(found[-1])} ({len(world)} costs)")
    return found


async def token_counts(
    chosen_subjects: Sequence[Subject], plan: Plan, data: Path, tell: Callable[[str], None]
) -> list[Tokens]:
    """What a candidate costs on the kernels of AccelOpt's checkout ``data``, in our prompts and in its own. The digest
    is that of our kernel for the same task, at its smaller size."""
    count, found = counter(), []
    for subject in chosen_subjects:
        kernel = next(iter(sorted(data.glob(f"NKIBench/kernels/{subject.name}_[A-Z]*.py"))), None)
        reference = next(iter(sorted(data.glob(f"NKIBench/reference/{subject.name}_[A-Z]*.py"))), None)
        if kernel is None or reference is None:
            continue
        async with _world(subject, plan) as world:
            base = (await world.baseline()).kernels[0]
        ours = our_tokens(count, kernel, base, subject.target)
        theirs = their_tokens(count, data, kernel, reference, base, subject.target)
        if ours is None or theirs is None:
            tell(
                f"{subject.name}: the catalogue has no rewrite for its kernel, so no tokens are counted on it"
            )
            continue
        found.append(Tokens(subject.name, ours, theirs))
        tell(f"{subject.name}: {sum(ours)} tokens instead of {sum(theirs)}")
    return found


@asynccontextmanager
async def _world(subject: Subject, plan: Plan) -> AsyncIterator[World]:
    host = LocalHost()
    try:
        request = OptimizeRequest(
            subject.path, subject.text, subject.target, root=subject.path.parent, kernel=subject.kernel.name
        )
        kept = plan.cache / f"{subject.name}.jsonl" if plan.cache else None
        yield World(subject, ProfiledCost(host, request), kept)
    finally:
        await host.close()


async def _one(world: World, plan: Plan, tokens: CallTokens) -> Found:
    base = (await world.baseline()).kernels[0].latency.us or float("inf")
    least = await explored(world, plan.texts)
    texts = MarkedTexts(world.subject.text, world.subject.kernel.name)
    outcomes = [
        await play(
            world,
            contender,
            seed,
            goal_us=least * NEAR,
            candidates=plan.candidates,
            tokens=tokens,
            texts=texts,
        )
        for contender in CONTENDERS
        for seed in range(plan.seeds)
    ]
    return Found(world.subject.name, base, least, tuple(outcomes))


def _told(found: Found) -> str:
    means = [f"{c.name} {_mean([o.candidates for o in _of(found.outcomes, c)]):.0f}" for c in CONTENDERS]
    return f"{found.base_us:.4g} to {found.least_us:.4g} us; candidates: {', '.join(means)}"


def _of(outcomes: Sequence[Outcome], contender: Contender) -> list[Outcome]:
    return [o for o in outcomes if o.contender == contender.name]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


@dataclass(frozen=True)
class Summary:
    """One contender over all subjects: what a run needs, and how many of the runs came near the best."""

    contender: str
    candidates: Interval
    tokens: Interval
    calls: Interval
    reached: float


def summaries(found: Sequence[Found]) -> list[Summary]:
    """Per seed the mean over subjects that leave something to find, and over seeds the mean with its interval."""
    random, result, found = Random(0), [], [f for f in found if f.open]
    for contender in CONTENDERS:
        mine = [o for f in found for o in _of(f.outcomes, contender)]
        result.append(
            Summary(
                contender.name,
                mean_of(_per_seed(mine, lambda o: o.candidates), random),
                mean_of(_per_seed(mine, lambda o: o.tokens), random),
                mean_of(_per_seed(mine, lambda o: o.calls), random),
                _mean([o.reached for o in mine]),
            )
        )
    return result


def _per_seed(outcomes: Sequence[Outcome], value: Callable[[Outcome], float]) -> list[float]:
    seeds = sorted({o.seed for o in outcomes})
    return [_mean([value(o) for o in outcomes if o.seed == seed]) for seed in seeds]


def rows(found: Sequence[Found]) -> list[Row]:
    """Hybrid's share of the candidates that the strategies of others need, against its goals."""
    random, result, found = Random(0), [], [f for f in found if f.open]
    mine = [o for f in found for o in f.outcomes if o.contender == CONTENDERS[0].name]
    for other, goal in GOALS.items():
        theirs = [o for f in found for o in f.outcomes if o.contender == other]
        share = ratio_of(
            _per_seed(mine, lambda o: o.candidates), _per_seed(theirs, lambda o: o.candidates), random
        )
        detail = f"95 % interval {share.low:.3f} to {share.high:.3f}; all evaluated candidates count"
        result.append(
            Row(
                f"candidates of hybrid / {other}",
                f"<= {goal:.2f}",
                share.mean,
                "",
                share.mean <= goal,
                detail,
            )
        )
    return result
