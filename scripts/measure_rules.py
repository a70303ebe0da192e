"""Writes docs/results/nki-rules.md: the effect of each NKI rule in ``accelopt bench nkibench --optimize --no-model``.

    python scripts/measure_rules.py RESULTS... --date 2026-11-21

RESULTS are the folders that the bench was told to write to (``--out``); of a task in several, the last counts. The
effect of a rule on a task is the best that one of its rewrites did to the estimated time of the version it changed.
"""

from __future__ import annotations

import argparse
import json
from math import exp, log
from pathlib import Path
from typing import Any

from accelopt_agent.search.recorder import CANDIDATE_TRIED
from accelopt_memory.memory import Memory
from accelopt_memory.records import RunEvent
from accelopt_profiling.plain import from_plain
from nkibench.result import TaskResult

FIGURES = Path(__file__).parents[1] / "docs/results/nki-rules.json"
PAGE = FIGURES.with_suffix(".md")

TEXT = """# Results: the NKI rules on NKIBench's baselines

The effect of each rule in a run of `accelopt bench nkibench --optimize --no-model` of {date} for {target}, on two
cores, with several commits of that evening in one table (the run of a single commit is in [nkibench.md](nkibench.md)).
`scripts/measure_rules.py` writes this page from the results of a run. Every time is the time model's estimate, none was
measured on a device; every best version went through the gate.
The baselines are the plain kernels of `nkibench/nkibench/tasks`, percent of peak is NKIBench's.

| task | baseline | of peak | best | of peak | candidates | gate | rules, one after the other |
|---|---|---|---|---|---|---|---|
{ways}

The geometric mean over these {count} tasks goes from {before:.1f} to {after:.1f} percent of peak, as estimated.

The best that a rewrite of each rule did to the estimated time of the version that it changed; empty where none was
tried, "-" where it changed less than half a percent. A search tries what promises most, so an empty cell does not say
that the rule does not apply. Five rules find nothing in these baselines. Four of them do in AccelOpt's own kernels for
the same tasks (47e29a7): nki-keep-resident (seven of them, bmm and lora among them), nki-hoist-transpose
(add_rmsnorm_matmul, matmul_add_rmsnorm), nki-merge-tiles (adamw, silu), nki-drop-copy (matmul_add_rmsnorm). The fifth
is nki-reuse-load. Younger than these results are nki-scale-after-product (gqa_full), nki-own-multiple (adamw),
nki-fuse-loops (AccelOpt's bmm_softmax, swiglu, gqa_full and lora) and nki-split-cores, which changes how a kernel is
launched and has no place here: NKIBench launches each kernel on one core.

`tests/agent/rules/test_nki_baselines.py` holds each rule to its word on a baseline: every counter that it names moves
that way, and the result stays that of the reference. The five, and nki-rsqrt-activation, are shown there on a baseline
of which a line or two are written as other people's kernels write them.

| rule | {tasks} |
|---|{bars}|
{effects}
"""


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
    figures = {"date": asked.date, "target": "trn1", "tasks": [tasks[name] for name in sorted(tasks)]}
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(page(figures), encoding="utf-8")


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
        us = (event.data.get("latency") or {}).get("us") if event.kind == CANDIDATE_TRIED else None
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


def page(found: dict[str, Any]) -> str:
    """The page in Markdown."""
    tasks = found["tasks"]
    names = sorted({rule for task in tasks for rule in task["effects"]})
    return TEXT.format(
        date=found["date"],
        target=found["target"],
        ways="\n".join(_way(task) for task in tasks),
        count=len(tasks),
        before=_mean([task["percent"] for task in tasks]),
        after=_mean([task["best_percent"] for task in tasks]),
        tasks=" | ".join(task["task"] for task in tasks),
        bars="|".join("---" for _ in tasks),
        effects="\n".join(
            f"| {rule} | {' | '.join(_effect(task, rule) for task in tasks)} |" for rule in names
        ),
    )


def _way(task: dict[str, Any]) -> str:
    rules = ", ".join(task["rules"]) or "none helps"
    gate = f"{task['accepted']} of {task['judged']} accepted" if task["judged"] else "not asked"
    return (
        f"| {task['task']} | {_time(task['us'])} | {task['percent']:.1f} | {_time(task['best_us'])}"
        f" | {task['best_percent']:.1f} | {task['tried']} | {gate} | {rules} |"
    )


def _time(us: float) -> str:
    return f"{us / 1000:.3g} ms"


def _effect(task: dict[str, Any], rule: str) -> str:
    ratio = task["effects"].get(rule)
    if ratio is None:
        return ""
    change = 100 * (ratio - 1)
    return "-" if abs(change) < 0.5 else f"{change:+.0f} %"


def _mean(numbers: list[float]) -> float:
    return exp(sum(map(log, numbers)) / len(numbers))


if __name__ == "__main__":
    main()
