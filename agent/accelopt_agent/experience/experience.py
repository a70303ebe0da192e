"""Chooses experience for a kernel among pairs and failures, by a policy.

Experience is plain data: changes that helped like kernels, each in the few lines that say most about it, and rewrites
that failed there. Pure: the same input, the same choice.
"""

from __future__ import annotations

import difflib
import json
import math
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from accelopt_agent.speedup import speedup
from accelopt_agent.suggestions.suggestion import Speedup
from accelopt_agent.syntax.lines import split_lines
from accelopt_memory.outcomes import LEAST_LOG, MOST_LOG, SHRINKAGE, Outcome, OutcomePrior
from accelopt_memory.records import LikeFailure, Match, Pair, Trap
from accelopt_profiling.plain import from_plain
from accelopt_profiling.quantity import CounterMove


@dataclass(frozen=True)
class TrackRecord:
    """How many kernels an item was tried on, how many it ``helped``, on how many it ``failed`` or was undone."""

    tasks: int = 0
    helped: int = 0
    failed: int = 0


@dataclass(frozen=True)
class ExperienceItem:
    """A change that made a kernel faster.

    ``item`` is what its outcomes are added up under (``outcomes.Outcome``), ``similarity`` (0..1) that of its slow side
    with the kernel asked about (None: not compared), ``change`` the lines of difference, of which ``left_out`` are not
    shown.
    """

    pair: Pair
    item: str
    similarity: float | None
    change: tuple[str, ...]
    left_out: int
    gain: Speedup | None
    record: TrackRecord

    @property
    def summary(self) -> str:
        return self.pair.summary

    @property
    def bounds(self) -> tuple[str | None, str | None]:
        """What limits the slow and the fast side."""
        return self.pair.bound, self.pair.fast_bound

    @property
    def moved(self) -> tuple[CounterMove, ...]:
        return self.pair.moved


@dataclass(frozen=True)
class KnownFailure:
    """A rewrite that failed, or got slower, on a kernel that looks like the one asked about."""

    trap: Trap
    similarity: float

    @property
    def what(self) -> str:
        return self.trap.summary or ", then ".join(self.trap.steps or (self.trap.origin,))

    @property
    def cause(self) -> str:
        return f"{self.trap.code}: {self.trap.message}" if self.trap.message else self.trap.code


@dataclass(frozen=True)
class KernelExperience:
    """What a role is told, the most useful first."""

    items: tuple[ExperienceItem, ...] = ()
    failures: tuple[KnownFailure, ...] = ()


def choose_experience(
    policy: ExperiencePolicy,
    near: Sequence[Match],
    newest: Sequence[Pair],
    failures: Sequence[LikeFailure],
    prior: OutcomePrior,
    bound: str | None,
    target: str,
    seed: int = 0,
) -> KernelExperience:
    """Choose what to tell about a kernel that ``bound`` limits on ``target``.

    ``near`` are the pairs whose slow sides look like the kernel, most similar first; ``newest`` all pairs in the order
    in which they came, for policies that do not compare. ``seed`` decides where a policy draws.
    """
    if policy.pick == "expected":
        chosen = _by_expected_gain(near, prior, bound=bound, target=target, policy=policy)
    else:
        similar = {match.pair.id: match.score for match in near}
        pool = [p for p in newest if p.speedup is not None and p.speedup > policy.least_gain]
        picked = _resampled(pool, policy, seed) if policy.pick == "resampled" else pool[-policy.items :]
        chosen = [(pair, similar.get(pair.id)) for pair in picked if policy.pick != "nothing"]
    return KernelExperience(
        tuple(_item(pair, score, prior) for pair, score in chosen),
        tuple(_failures(failures, policy.failures)),
    )


def item_of(pair: Pair) -> str:
    """Return what the outcomes of a pair's change are added up under: the rules that made it, or its edit."""
    steps = pair.steps or (pair.origin,)
    if all(step.startswith("rule:") for step in steps):
        return f"sequence:{','.join(steps)}" if len(steps) > 1 else steps[0]
    return f"edit:{pair.edit or pair.id}"


def expected_log(pair: Pair, prior: OutcomePrior, bound: str | None, target: str) -> float:
    """Return the expected logarithm of time after over time before of a pair's change: what its outcomes let expect
    and, where it has none, its own gain as one vote."""
    items = [item for item in (item_of(pair), f"edit:{pair.edit}") if prior.knows(item)]
    if items:
        return min(math.log(prior.expected(item, bound, target)) for item in items)
    before = math.log(prior.expected(item_of(pair), bound, target))
    if not pair.speedup:
        return before
    own = max(LEAST_LOG, min(MOST_LOG, -math.log(pair.speedup)))
    return (SHRINKAGE * before + own) / (SHRINKAGE + 1)


def _by_expected_gain(
    near: Sequence[Match], prior: OutcomePrior, bound: str | None, target: str, policy: ExperiencePolicy
) -> list[tuple[Pair, float | None]]:
    """Return the pairs with the largest similarity times expected gain, one for each item."""
    scored = []
    for match in near:
        gain = -expected_log(match.pair, prior, bound, target)
        slower = match.pair.speedup is not None and match.pair.speedup <= policy.least_gain
        if gain > 0 and not slower:
            scored.append((-match.score * gain, match.pair.id, match))
    chosen: list[Match] = []
    used_names: set[str] = set()
    for _, _, match in sorted(scored, key=lambda entry: entry[:2]):
        names = {item_of(match.pair), f"edit:{match.pair.edit or match.pair.id}"}
        if len(chosen) < policy.items and not names & used_names:
            chosen.append(match)
            used_names |= names
    return [(match.pair, match.score) for match in chosen]


def _resampled(pool: Sequence[Pair], policy: ExperiencePolicy, seed: int) -> list[Pair]:
    """Return the list as it is after rounds that each bring new pairs and keep a random sample of those before."""
    drawn = random.Random(seed)
    listed: list[Pair] = []
    for first in range(0, len(pool), policy.round):
        new = sorted(pool[first : first + policy.round], key=lambda p: -(p.speedup or 0.0))
        room = max(0, policy.items - len(new))
        listed = [*new, *drawn.sample(listed, min(room, len(listed)))]
    return listed[: policy.items]


def _item(pair: Pair, similarity: float | None, prior: OutcomePrior) -> ExperienceItem:
    change, left_out = short_change(pair.slow_text, pair.fast_text)
    gain = speedup(pair.slow, pair.fast, pair.target)
    items = {item_of(pair), f"edit:{pair.edit}"}
    record = track_record(o for o in prior.outcomes if o.item in items)
    return ExperienceItem(
        pair, item_of(pair), similarity=similarity, change=change, left_out=left_out, gain=gain, record=record
    )


def track_record(outcomes: Iterable[Outcome]) -> TrackRecord:
    """Count the kernels on which outcomes of one item helped, and on which it only failed or was undone."""
    tasks: dict[str, list[Outcome]] = {}
    for one in outcomes:
        tasks.setdefault(one.task, []).append(one)
    helped = {t for t, tries in tasks.items() if any(o.helped for o in tries)}
    failed = {t for t, tries in tasks.items() if any(o.failed or o.undone for o in tries)} - helped
    return TrackRecord(len(tasks), len(helped), len(failed))


def _failures(like: Sequence[LikeFailure], most: int) -> list[KnownFailure]:
    """Return failures of the most similar kernels with different causes, those that were wrong before those that were
    only slower."""
    ranked = sorted(like, key=lambda f: (f.trap.code == "slower", -f.score))
    failures: dict[tuple[str, str], KnownFailure] = {}
    for one in ranked:
        failure = KnownFailure(one.trap, one.score)
        failures.setdefault((one.trap.code, failure.what), failure)
    return list(failures.values())[:most]


#: "expected": by similarity times expected gain; "newest": the last pairs; "resampled": the last pairs and a random
#: sample of those before them, again with every round.
Pick = Literal["expected", "newest", "resampled", "nothing"]


@dataclass(frozen=True)
class ExperiencePolicy:
    """How many ``items`` and ``failures`` are chosen, and how.

    ``tokens`` bounds their text (None: no bound); ``least_gain`` is the speedup below which a pair teaches nothing;
    ``round`` is how many pairs come in at once.
    """

    pick: Pick
    items: int
    failures: int
    tokens: int | None
    least_gain: float = 1.0
    round: int = 8
    what: str = ""


@cache
def policies() -> dict[str, ExperiencePolicy]:
    """Return the policies by name."""
    data = json.loads(resources.files(__package__).joinpath("policies.json").read_text("utf-8"))
    return {name: from_plain(ExperiencePolicy, entry) for name, entry in data.items()}


def policy_named(name: str) -> ExperiencePolicy:
    """Return the policy ``name``. Raises ValueError: there is none, with the names that there are."""
    all_policies = policies()
    if name not in all_policies:
        raise ValueError(f"There is no experience policy {name!r}; there are {', '.join(all_policies)}.")
    return all_policies[name]


#: The most lines of a change that are shown, and the most characters of each.
MOST_LINES, MOST_CHARACTERS = 8, 140

_CALL = re.compile(r"[\w.]+\(")
_LIBRARY = re.compile(r"\b(?:tl|nl|nisa|libdevice)\.\w+")


def short_change(
    slow: str, fast: str, most: int = MOST_LINES, width: int = MOST_CHARACTERS
) -> tuple[tuple[str, ...], int]:
    """Return at most ``most`` lines of the difference between two texts, each with its "-" or "+", in their order, and
    how many more changed. Blank lines, comments and imports are never shown.

    Lines that call, loop, decide or launch are shown before others, those that come before their like first; no side
    gets more than its half while the other one has lines left.
    """
    lines = _difference(slow, fast)
    shares = _shares([sum(sign == side for side, _ in lines) for sign in "-+"], most)
    numbers: set[int] = set()
    for sign, share in zip("-+", shares, strict=True):
        own = [k for k, (side, _) in enumerate(lines) if side == sign]
        numbers |= set(sorted(own, key=lambda k: (-_weight(lines[k][1]), k))[:share])
    indent = min((len(t) - len(t.lstrip()) for k, (_, t) in enumerate(lines) if k in numbers), default=0)
    excerpt = tuple(_cut(sign + text[indent:], width) for k, (sign, text) in enumerate(lines) if k in numbers)
    return excerpt, len(lines) - len(excerpt)


def _difference(slow: str, fast: str) -> list[tuple[str, str]]:
    old, new = split_lines(slow).texts, split_lines(fast).texts
    changes = []
    for line in difflib.unified_diff(old, new, lineterm="", n=0):
        if line[:1] in "-+" and not line.startswith(("---", "+++")) and _says_something(line[1:]):
            changes.append((line[0], line[1:].rstrip()))
    return changes


def _says_something(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith(("#", "import ", "from ", '"""', "'''")) and text not in ")]}),"


def _shares(counts: Sequence[int], most: int) -> tuple[int, int]:
    """Divide ``most`` lines between the two sides."""
    removed = min(counts[0], max(most // 2, most - counts[1]))
    return removed, min(counts[1], most - removed)


def _weight(line: str) -> int:
    text = line.strip()
    looping = text.startswith(("for ", "while ", "if ", "def ", "@", "return "))
    launching = bool(re.search(r"\w\[[^\]]*\]\(", text))
    return 2 * bool(_LIBRARY.search(text)) + 2 * looping + 2 * launching + bool(_CALL.search(text))


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."
