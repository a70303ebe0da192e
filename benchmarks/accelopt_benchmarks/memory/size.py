"""Measures a large memory: the time of a look-up beside a scan of vectors, inserts a second, bytes for each pair."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from accelopt_benchmarks.result import GoalResult
from accelopt_memory.feature_pack import fixed_row, similarities
from accelopt_memory.features import KernelFeatures, kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.pair_rows import pair_columns
from accelopt_memory.records import Pair
from accelopt_memory.rows import to_row
from accelopt_profiling.kernels import find_kernels

#: The 99th percentile in milliseconds that a look-up may take among so many pairs, inserts for each second, bytes for
#: a pair beyond its compressed sources.
GOALS_MS = {10_000: 2.0, 100_000: 4.0, 1_000_000: 10.0}
INSERTS, BYTES = 500, 1000
#: Queries that are timed, after so many that are not; inserts that are timed; numbers in a vector of the scan.
QUERIES, UNTIMED, INSERTED, NUMBERS = 300, 20, 1000, 256
#: Queries whose true best eight are looked for, and how many of a large memory's pairs have features of their own.
RECALLED, DISTINCT = 10, 50_000


@dataclass(frozen=True)
class LookUpTimes:
    """Milliseconds of each timed query, and what share of the true best eight was found."""

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
    draw = random.Random(seed)
    dialect = max(("triton", "nki"), key=lambda d: sum(k.dialect == d for k in kernels))
    same = [k for k in kernels if k.dialect == dialect]
    stored = _fill(memory, same, draw, count)
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
        elif number < RECALLED:
            least = _eighth(query, stored, count)
            found += sum(match.score >= least - 1e-6 for match in matches)
    return LookUpTimes(tuple(ours), tuple(scan), found / (8 * RECALLED))


def _fill(memory: Memory, kernels: Sequence[KernelFeatures], draw: random.Random, count: int) -> list[bytes]:
    """Add ``count`` pairs, of which ``DISTINCT`` have features of their own, and return these packed. The rows of a
    large memory are written straight into the table, as saving a million pairs one by one takes an hour."""
    rows, stored = [], []
    for number in range(min(count, DISTINCT)):
        pair = _synthetic(number, mixed(kernels, draw))
        columns = to_row(pair) | pair_columns(pair)
        rows.append(columns)
        stored.append(fixed_row(columns["packed"]))
    names = [*rows[0], "id"]
    listed, marks = ", ".join(f'"{name}"' for name in names), ", ".join("?" * len(names))
    made = ([*rows[number % len(rows)].values(), f"{number:016x}"] for number in range(count))
    with memory.connection.writing() as db:
        db.conn.executemany(f"INSERT INTO pairs ({listed}) VALUES ({marks})", made)
    return stored


def _eighth(query: KernelFeatures, stored: Sequence[bytes], count: int) -> float:
    """Return the similarity of the eighth most similar of ``count`` rows that repeat the ``stored`` ones."""
    scores = np.concatenate(
        [similarities(query, stored[first : first + 2000]) for first in range(0, len(stored), 2000)]
    )
    copies = count // len(stored)
    return float(np.sort(scores)[::-1][7 // copies])


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


def bytes_used(memory: Memory) -> int:
    """Return the bytes of the database that hold something, without the compressed sources of its pairs."""
    with memory.connection.reading() as db:
        pages, size = (int(db.execute(f"PRAGMA {n}").fetchone()[0]) for n in ("page_count", "page_size"))
        free = int(db.execute("PRAGMA freelist_count").fetchone()[0])
        sources = int(db.execute("SELECT ifnull(sum(length(sources)), 0) FROM pairs").fetchone()[0])
    return (pages - free) * size - sources


def _beside(python: Path, count: int, folder: Path) -> str:
    """Return what the databases of others need for as many vectors, run by their own interpreter."""
    program = Path(__file__).with_name("vector_stores.py")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [str(python), str(program), str(count), str(NUMBERS), str(QUERIES), place]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"; beside it: {done.stderr.strip().splitlines()[-1:]}"
    text = ""
    for name, times in json.loads(done.stdout).items():
        median, most = _percentiles(times["ms"])
        text += f"; {name} {times['version']}: {median:.2f}, p99 {most:.2f} ms"
    return text


def size_rows(
    kernels: Sequence[KernelFeatures], pairs: Sequence[Pair], sizes: Sequence[int], folder: Path,
    say: Callable[[str], None], beside: Path | None = None,
) -> list[GoalResult]:  # fmt: skip
    """Measure memories of so many pairs in ``folder``, and inserts and bytes of the ``pairs`` in one of their own.
    ``beside`` is a Python that has ChromaDB and LanceDB, which are timed with as many vectors."""
    rows = []
    for count in sizes:
        with Memory.open(folder / f"{count}.db") as memory:
            times = look_up_times(memory, kernels, count)
        ours, scan = (_percentiles(t) for t in (times.ours, times.scan))
        recall = f"; {times.recall:.0%} of the true best eight"
        goal = GOALS_MS.get(count)
        others = f"NumPy scan of {NUMBERS} numbers: {scan[0]:.2f}, p99 {scan[1]:.2f} ms"
        others += _beside(beside, count, folder) if beside is not None else ""
        detail = f"median {ours[0]:.2f} ms; {others}{recall}"
        met = None if goal is None else ours[1] <= goal
        rows.append(
            GoalResult(
                f"top 8 of {count:,} pairs, p99", f"<= {goal} ms" if goal else "", ours[1], "ms", met, detail
            )
        )
        say(f"{count:,} pairs: {detail}")
        (folder / f"{count}.db").unlink()
    with Memory.open(folder / "inserts.db") as memory:
        empty = bytes_used(memory)
        speed = inserts_a_second(memory, pairs)
        size = (bytes_used(memory) - empty) / INSERTED
    how = f"{INSERTED} saves of the hand-made pairs, each synchronised"
    rows.append(GoalResult("inserts a second", f">= {INSERTS}", speed, "/s", speed >= INSERTS, how))
    rows.append(
        GoalResult("bytes a pair beyond compressed sources", f"<= {BYTES}", size, "B", size <= BYTES, how)
    )
    return rows


def _percentiles(times: Sequence[float]) -> tuple[float, float]:
    return float(np.percentile(times, 50)), float(np.percentile(times, 99))
