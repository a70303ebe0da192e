"""Measures a large memory: the time of a look-up beside a scan of vectors, inserts a second, bytes for each pair."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from accelopt_benchmarks.result import GoalResult
from accelopt_memory.features import KernelFeatures, kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair
from accelopt_profiling.kernels import find_kernels

#: The 99th percentile in milliseconds that a look-up may take among so many pairs, inserts for each second, bytes for
#: a pair beyond its compressed sources.
GOALS_MS = {10_000: 2.0, 100_000: 4.0, 1_000_000: 10.0}
INSERTS, BYTES = 500, 1000
#: Queries that are timed, after so many that are not; inserts that are timed; numbers in a vector of the scan.
QUERIES, UNTIMED, INSERTED, NUMBERS = 300, 20, 1000, 256


@dataclass(frozen=True)
class LookUpTimes:
    """Milliseconds of each timed query, and what share of the true best eight they found."""

    ours: tuple[float, ...]
    scan: tuple[float, ...]
    recall: float


def kernels_below(folders: Sequence[Path]) -> list[KernelFeatures]:
    """Return the features of every kernel in the Python files below ``folders``; those that cannot be read are left
    out."""
    found = []
    for path in sorted(p for folder in folders for p in folder.rglob("*.py")):
        try:
            text = path.read_text("utf-8")
            names = [k.name for k in find_kernels(text).kernels if not k.device_function]
            found += [kernel_features(text, name, "memory") for name in names]
        except (ValueError, OSError, RecursionError):
            continue
    return found


def mixed(kernels: Sequence[KernelFeatures], draw: random.Random) -> KernelFeatures:
    """Return features that look like those of a kernel: most of one and some of another of the same dialect."""
    one = draw.choice(kernels)
    other = draw.choice([k for k in kernels if k.dialect == one.dialect])
    calls = {n: c for n, c in one.calls.items() if draw.random() < 0.85}
    calls |= {n: c for n, c in other.calls.items() if draw.random() < 0.2}
    shingles = {s for s in one.shingles if draw.random() < 0.8}
    shingles |= {s for s in other.shingles if draw.random() < 0.2}
    shingles |= {f"{draw.getrandbits(30):08x}" for _ in range(draw.randrange(8))}
    return replace(one, calls=calls, shingles=tuple(sorted(shingles)))


def look_up_times(
    memory: Memory, kernels: Sequence[KernelFeatures], count: int, seed: int = 0
) -> LookUpTimes:
    """Fill ``memory`` with ``count`` pairs and time the top 8 of queries that were never asked, in turn with a scan
    of as many vectors in NumPy."""
    from accelopt_memory.similarity import similarity

    draw = random.Random(seed)
    dialect = max(("triton", "nki"), key=lambda d: sum(k.dialect == d for k in kernels))
    same = [k for k in kernels if k.dialect == dialect]
    stored = [mixed(same, draw) for _ in range(count)]
    for first in range(0, count, 20_000):
        with memory.transaction():
            for number, features in enumerate(stored[first : first + 20_000], first):
                memory.add_pair(_synthetic(number, features))
    vectors = np.random.default_rng(seed).standard_normal((count, NUMBERS), dtype=np.float32)
    ours, scan, found = [], [], 0
    for number in range(UNTIMED + QUERIES):
        query = mixed(same, draw)
        begin = time.perf_counter()
        matches = memory.similar(query, 8, 0.0)
        middle = time.perf_counter()
        _nearest(vectors, number % count)
        end = time.perf_counter()
        if number >= UNTIMED:
            ours.append(1000 * (middle - begin))
            scan.append(1000 * (end - middle))
        if number < UNTIMED and count <= 20_000:
            least = sorted((similarity(query, f) for f in stored), reverse=True)[7]
            found += sum(match.score >= least - 1e-9 for match in matches)
    return LookUpTimes(tuple(ours), tuple(scan), found / (8 * UNTIMED) if count <= 20_000 else float("nan"))


def _nearest(vectors: Any, query: int) -> Any:
    scores = vectors @ vectors[query]
    best = np.argpartition(-scores, 8)[:8]
    return best[np.argsort(-scores[best])]


def _synthetic(number: int, features: KernelFeatures) -> Pair:
    text = f"# kernel {number}\n"
    return Pair(
        "kernel", features.dialect, "h100", text, f"{text}# faster\n", f"s{number}", f"f{number}", "person",
        "synthetic", features,
    )  # fmt: skip


def inserts_a_second(memory: Memory, pairs: Sequence[Pair], count: int = INSERTED) -> float:
    """Return how many pairs are saved in a second, each on the disk before the next, over ``count`` saves."""
    made = [replace(pairs[k % len(pairs)], kernel=f"kernel_{k}") for k in range(count)]
    begin = time.perf_counter()
    for pair in made:
        memory.add_pair(pair)
    return count / (time.perf_counter() - begin)


def bytes_a_pair(memory: Memory) -> float:
    """Return the bytes of the database for each of its pairs, without their compressed sources."""
    with memory.connection.reading() as db:
        pages, size = (int(db.execute(f"PRAGMA {n}").fetchone()[0]) for n in ("page_count", "page_size"))
        free = int(db.execute("PRAGMA freelist_count").fetchone()[0])
        count, sources = db.execute("SELECT count(*), sum(length(sources)) FROM pairs").fetchone()
    return float(((pages - free) * size - sources) / count)


def size_rows(
    kernels: Sequence[KernelFeatures], pairs: Sequence[Pair], sizes: Sequence[int], folder: Path,
    say: Callable[[str], None],
) -> list[GoalResult]:  # fmt: skip
    """Measure memories of so many pairs in ``folder``, and inserts and bytes of the ``pairs`` in one of their own."""
    rows = []
    for count in sizes:
        with Memory.open(folder / f"{count}.db") as memory:
            times = look_up_times(memory, kernels, count)
        ours, scan = (_percentiles(t) for t in (times.ours, times.scan))
        recall = "" if times.recall != times.recall else f"; {times.recall:.0%} of the true best eight"
        goal = GOALS_MS.get(count)
        beside = f"NumPy scan of {NUMBERS} numbers: {scan[0]:.2f}, p99 {scan[1]:.2f} ms"
        detail = f"median {ours[0]:.2f} ms; {beside}{recall}"
        met = None if goal is None else ours[1] <= goal
        rows.append(
            GoalResult(
                f"top 8 of {count:,} pairs, p99", f"<= {goal} ms" if goal else "", ours[1], "ms", met, detail
            )
        )
        say(f"{count:,} pairs: {detail}")
        (folder / f"{count}.db").unlink()
    with Memory.open(folder / "inserts.db") as memory:
        speed = inserts_a_second(memory, pairs)
        size = bytes_a_pair(memory)
    how = f"{INSERTED} saves of the hand-made pairs, each synchronised"
    rows.append(GoalResult("inserts a second", f">= {INSERTS}", speed, "/s", speed >= INSERTS, how))
    rows.append(
        GoalResult("bytes a pair beyond compressed sources", f"<= {BYTES}", size, "B", size <= BYTES, how)
    )
    return rows


def _percentiles(times: Sequence[float]) -> tuple[float, float]:
    return float(np.percentile(times, 50)), float(np.percentile(times, 99))
