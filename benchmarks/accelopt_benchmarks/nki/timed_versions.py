"""Compares versions of one kernel as the time model orders them with times that others measured on a device.

The times stand in ``timed_versions.json``, by task of NKIBench. The kernels come from a checkout of
Jerry2423/kda-for-trainium, their inputs from one of zhang677/AccelOpt. They are only traced, in child processes.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib import resources
from itertools import combinations
from math import log
from pathlib import Path
from unittest.mock import patch

from accelopt_agent.speedup import direction
from accelopt_benchmarks.nki.time_model import SUMMARY, WORKERS, imported, zeros
from accelopt_benchmarks.result import GoalResult
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

#: A difference of two measured times that is smaller counts as none.
_SAME = 1.05


@dataclass(frozen=True)
class TimedVersion:
    """A version of a kernel: its measured and its estimated time, in microseconds."""

    name: str
    measured_us: float
    us: float
    low_us: float
    high_us: float

    @property
    def latency(self) -> Latency:
        return Latency(self.us, self.low_us, self.high_us, Known.ESTIMATED)


@dataclass
class Score:
    """What became of the pairs of versions.

    Of the ``calls`` that one is faster ``right`` are, by 5 % or more, and ``wrong`` are slower by 2 %; ``gains`` are
    within 25 %. ``pairs`` differ by 5 % on the device, ``ordered`` of them as the estimates do.
    """

    calls: int = 0
    right: int = 0
    wrong: int = 0
    gains: int = 0
    pairs: int = 0
    ordered: int = 0
    errors: list[float] = field(default_factory=list)
    inside: int = 0

    def add(self, versions: Sequence[TimedVersion], target: str) -> None:
        """Count the versions of a task, and its pairs."""
        self.errors += [log(v.us / v.measured_us) for v in versions]
        self.inside += sum(v.low_us <= v.measured_us <= v.high_us for v in versions)
        for pair in combinations(versions, 2):
            fast, slow = sorted(pair, key=lambda v: v.us)
            real, claim = slow.measured_us / fast.measured_us, slow.us / fast.us
            if max(real, 1 / real) > _SAME:
                self.pairs += 1
                self.ordered += real > 1
            if direction(slow.latency, fast.latency, target) == "faster":
                self.calls += 1
                self.right += real >= _SAME
                self.wrong += real < 0.98
                self.gains += abs(claim / real - 1) <= 0.25


def rows(results: Mapping[str, Sequence[TimedVersion]], target: str) -> list[GoalResult]:
    """Return what was found by task, and for all of them."""
    table, total, favourites = [], Score(), 0
    for task, versions in results.items():
        score = Score()
        score.add(versions, target)
        total.add(versions, target)
        favourite = min(versions, key=lambda v: v.us)
        behind = favourite.measured_us / min(v.measured_us for v in versions)
        favourites += behind <= 1.1
        detail = (
            f"{score.right} of {score.calls} calls right, {score.wrong} slower; {score.ordered} of {score.pairs} pairs "
            f"in order; favourite {behind:.2f}x of the best"
        )
        error = 100 * statistics.median(map(abs, score.errors))
        table.append(
            GoalResult(f"{task}: error of {len(versions)} versions, median", "", error, "%", None, detail)
        )
    count = len(total.errors)
    shares = [
        ("called faster, and are", ">= 90 %", total.right, total.calls, 0.9),
        ("called faster, and gain within 25 %", ">= 70 %", total.gains, total.calls, 0.7),
        ("pairs over 5 % apart, in order", ">= 90 %", total.ordered, total.pairs, 0.9),
        ("favourite within 10 % of the best", ">= 85 %", favourites, len(results), 0.85),
        ("measured inside of the interval", ">= 90 %", total.inside, count, 0.9),
    ]
    for what, goal, part, whole, least in shares:
        share = part / max(1, whole)
        table.append(GoalResult(what, goal, 100 * share, "%", share >= least, f"{part} of {whole}"))
    wrong = total.wrong / max(1, total.calls)
    slower = f"{total.wrong} of {total.calls}"
    table.append(
        GoalResult("called faster, and are slower", "<= 3 %", 100 * wrong, "%", wrong <= 0.03, slower)
    )
    return table


def timed_versions(checkouts: Sequence[Path]) -> list[GoalResult]:
    """Trace and estimate every version whose kernel and task are in one of the ``checkouts``.

    Raises:
        FileNotFoundError: a kernel or NKIBench's tasks are in none of them.
    """
    text = (resources.files(__package__) / "timed_versions.json").read_text(encoding="utf-8")
    facts = json.loads(text)
    jobs = list(_jobs(facts, checkouts))
    results: dict[str, list[TimedVersion]] = {}
    with ProcessPoolExecutor(WORKERS) as pool:
        for (task, *_), version in zip(jobs, pool.map(_estimated, jobs), strict=True):
            results.setdefault(task, []).append(version)
    return rows(results, facts["target"])


#: Task of NKIBench, its file, the kernel's, the target and the measured microseconds.
_Job = tuple[str, Path, Path, str, float]


def _jobs(facts: Mapping[str, object], checkouts: Sequence[Path]) -> Iterator[_Job]:
    home = _holder(checkouts, Path("NKIBench") / SUMMARY).parent
    summary = json.loads((home / SUMMARY).read_text(encoding="utf-8"))
    tasks, target, wrong = facts["tasks"], facts["target"], facts["wrong"]
    assert isinstance(tasks, dict)
    assert isinstance(target, str)
    assert isinstance(wrong, list)
    for task, times in tasks.items():
        case = next(iter(summary[task]["cases"].values()))
        for file, measured_us in times.items():
            if file not in wrong:
                yield (
                    task,
                    home / case["impls"][0]["task"],
                    _holder(checkouts, Path(file)),
                    target,
                    measured_us,
                )


def _holder(checkouts: Sequence[Path], file: Path) -> Path:
    for checkout in checkouts:
        if (checkout / file).is_file():
            return checkout / file
    raise FileNotFoundError(f"{file} is in none of: {', '.join(map(str, checkouts)) or 'no checkout'}")


def _estimated(job: _Job) -> TimedVersion:
    from accelopt_profiling.nki.install import emulated
    from accelopt_profiling.nki.time_model.estimate import estimate
    from accelopt_profiling.nki.time_model.hardware import hardware

    _, task, kernel, target, measured_us = job
    machine = hardware(target)
    with emulated("trace", limits=machine.limits) as emulation:
        module = imported(task)
        with patch("numpy.random.normal", zeros):
            inputs = module.transform_to_nki_inputs(module.get_inputs())
        imported(kernel).kernel(*inputs)
    answer = estimate(emulation.machines[0].trace, machine)
    return TimedVersion(kernel.stem, measured_us, answer.us, answer.low_us, answer.high_us)
