"""What the NKI rules did in runs of ``accelopt bench nkibench --optimize --no-model``, as docs/rules.md shows it.

    python scripts/measure_rules.py RESULTS... --date 2026-11-21 > agent/accelopt_agent/rules/measured.json

RESULTS are the folders that the bench was told to write to (``--out``); of a task in several, the last counts. The
effect of a rule on a task is the best that one of its rewrites did to the estimated time of the version it changed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from accelopt_agent.resume import TRIED
from accelopt_memory.memory import Memory
from accelopt_memory.records import RunEvent
from accelopt_profiling.plain import from_plain
from nkibench.result import TaskResult


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--date", required=True)
    asked = parser.parse_args()
    tasks: dict[str, dict[str, Any]] = {}
    for folder in asked.results:
        for result in _searched(folder):
            tasks[result.task] = _told(result, _effects(folder, result))
    found = {"date": asked.date, "target": "trn1", "tasks": [tasks[name] for name in sorted(tasks)]}
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _searched(folder: Path) -> list[TaskResult]:
    """The results of searches in a journal, the last of each task."""
    lines = (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    results = [from_plain(TaskResult, json.loads(line)) for line in lines]
    return list({r.task: r for r in results if r.best is not None}.values())


def _told(result: TaskResult, effects: dict[str, float]) -> dict[str, Any]:
    best = result.best
    assert best is not None
    return {
        "task": result.task, "us": _rounded(result.latency.us), "percent": _rounded(result.percent),
        "best_us": _rounded(best.latency.us), "best_percent": _rounded(result.best_percent),
        "rules": [step.removeprefix("rule:") for step in best.steps],
        "tried": best.tried, "judged": best.judged, "accepted": best.accepted,
        "effects": {rule: _rounded(ratio) for rule, ratio in sorted(effects.items())},
    }  # fmt: skip


def _rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.5g}")


def _effects(folder: Path, result: TaskResult) -> dict[str, float]:
    """Time after over time before of each rule's best rewrite, in the last run for the task's kernel."""
    for database in sorted(folder.glob("memory-*.db"), key=lambda path: path.stat().st_mtime, reverse=True):
        with Memory.open(database, read_only=True) as memory:
            for run in memory.run_log.runs():
                if Path(run.file).parts[-2:] == Path(result.kernel).parts[-2:] and run.status == "finished":
                    return _of_run(memory.run_log.events(run.id), result.latency.us or 0.0)
    return {}


def _of_run(events: list[RunEvent], baseline_us: float) -> dict[str, float]:
    """The version that a rewrite changed is taken to be the fastest one that the same rules had made before."""
    times: dict[tuple[str, ...], float] = {(): baseline_us}
    best: dict[str, float] = {}
    for event in events:
        us = (event.data.get("latency") or {}).get("us") if event.kind == TRIED else None
        if us is None:
            continue
        *before, rule = event.data["steps"]
        changed = times.get(tuple(before))
        if changed is not None:
            name = rule.removeprefix("rule:")
            best[name] = min(us / changed, best.get(name, us / changed))
        made = (*before, rule)
        times[made] = min(us, times.get(made, us))
    return best


if __name__ == "__main__":
    main()
