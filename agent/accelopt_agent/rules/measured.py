"""What the NKI rules did to NKIBench's baselines, as Markdown: from ``measured.json``, which
``scripts/measure_rules.py`` takes from a run of the bench."""

from __future__ import annotations

import json
from importlib import resources
from math import exp, log
from typing import Any

_TEXT = """## NKIBench

What `accelopt bench nkibench --optimize --no-model` did on {date} for {target}, taken from its results with
`scripts/measure_rules.py`. Every time is the time model's estimate, none was measured on a device; every best version
went through the gate. The baselines are the plain kernels of `nkibench/nkibench/tasks`, percent of peak is NKIBench's.

| task | baseline | of peak | best | of peak | candidates | gate | rules, one after the other |
|---|---|---|---|---|---|---|---|
{ways}

The geometric mean over these {count} tasks goes from {before:.1f} to {after:.1f} percent of peak, as estimated.

The best that a rewrite of each rule did to the estimated time of the version that it changed; empty where none was
tried, "-" where it changed less than half a percent. A search tries what promises most, so an empty cell does not say
that the rule does not apply. Five rules find nothing in these baselines. Four of them do in AccelOpt's own kernels for
the same tasks (47e29a7): nki-keep-resident (seven of them, bmm and lora among them), nki-hoist-transpose
(add_rmsnorm_matmul, matmul_add_rmsnorm), nki-merge-tiles (adamw, silu), nki-drop-copy (matmul_add_rmsnorm). The fifth
is nki-reuse-load. nki-scale-after-product applies to gqa_full; it is younger than these results.

`tests/agent/test_rules_nki_baselines.py` holds each rule to its word on a baseline: every counter that it names moves
that way, and the result stays that of the reference. The five, and nki-rsqrt-activation, are shown there on a baseline
of which a line or two are written as other people's kernels write them.

| rule | {tasks} |
|---|{bars}|
{effects}
"""


def measured() -> dict[str, Any]:
    """The figures, with the day and the target they are of."""
    found: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath("measured.json").read_text("utf-8")
    )
    return found


def section() -> str:
    """The part of the page about NKIBench."""
    found = measured()
    tasks = found["tasks"]
    rules = sorted({rule for task in tasks for rule in task["effects"]})
    return _TEXT.format(
        date=found["date"],
        target=found["target"],
        ways="\n".join(_way(task) for task in tasks),
        count=len(tasks),
        before=_mean([task["percent"] for task in tasks]),
        after=_mean([task["best_percent"] for task in tasks]),
        tasks=" | ".join(task["task"] for task in tasks),
        bars="|".join("---" for _ in tasks),
        effects="\n".join(
            f"| {rule} | {' | '.join(_effect(task, rule) for task in tasks)} |" for rule in rules
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
