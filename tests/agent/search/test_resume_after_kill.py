"""A search that is killed at any step goes on without paying for anything twice that it had written down."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from accelopt_memory.memory import Memory

TESTS = Path(__file__).parents[2]

#: Two calls, two costs and one check run at a time: so much may be paid for and not yet be written down.
IN_FLIGHT = 5


def run(folder: Path, steps: int | None) -> tuple[bool, float]:
    """Run the search and kill it after so many payments; whether it came to its end, and its best time."""
    child = subprocess.Popen(
        [sys.executable, "-m", "support.killed_search", str(folder / "memory.db"), str(folder / "paid")],
        cwd=TESTS, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    best, payments = 100.0, 0
    for line in child.stdout:
        word, _, rest = line.strip().partition(" ")
        if word == "finished":
            child.wait()
            assert child.returncode == 0
            return True, best
        if word == "best":
            best = min(best, float(rest))
            continue
        payments += 1
        if payments == steps:
            child.kill()
    child.wait()
    assert steps is not None, "it ended without a word"
    return False, best


def paid(folder: Path) -> Counter[str]:
    return Counter((folder / "paid").read_text().splitlines())


def written(folder: Path) -> int:
    """How many costs, verdicts and answers the memory has."""
    with Memory.open(folder / "memory.db") as memory, memory.connection.reading() as db:
        (count,) = db.execute("SELECT count(*) FROM profile_cache").fetchone()
    return int(count)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_a_search_killed_at_any_step_pays_for_nothing_twice(tmp_path: Path, seed: int) -> None:
    whole, pieces, random = tmp_path / "whole", tmp_path / "pieces", Random(seed)
    whole.mkdir()
    pieces.mkdir()
    ended, best = run(whole, None)
    assert ended
    assert max(paid(whole).values()) == 1
    kills, best_times = 0, [best]
    while True:
        ended, best = run(pieces, random.randint(2, 16))
        best_times.append(best)
        if ended:
            break
        kills += 1
        assert kills < 60, "it does not get on"
        assert sum(paid(pieces).values()) - written(pieces) <= IN_FLIGHT * kills
    assert kills >= 3
    twice = sum(count - 1 for count in paid(pieces).values())
    assert twice <= IN_FLIGHT * kills
    assert min(best_times[1:]) < 0.7 * 100  # what was tried before a kill counts
