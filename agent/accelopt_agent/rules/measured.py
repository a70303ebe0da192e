"""What the NKI rules do to NKIBench's baselines, as Markdown: from ``measured.json``, which
``scripts/measure_rules.py`` finds out."""

from __future__ import annotations

import json
from importlib import resources
from math import exp, log
from typing import Any

_TEXT = """## NKIBench

Found out on {date} with `scripts/measure_rules.py` on {target}; every time is the time model's estimate, none was
measured on a device. The baselines are the plain kernels of `nkibench/nkibench/tasks`. Percent of peak is of the
roofline that `accelopt profile` uses.

The best rules one after the other, at most {steps} steps, none of them through the gate yet (`accelopt bench nkibench
--optimize --no-model` does that):

| task | baseline | of peak | then | of peak | rules |
|---|---|---|---|---|---|
{ways}

The geometric mean over these {count} tasks goes from {before:.1f} to {after:.1f} percent of peak.{missing} {note}

Each rule alone, as the change of the estimated time by the best of its first three rewrites; empty where it does not
apply:

| rule | {tasks} |
|---|{bars}|
{alone}
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
    rules = sorted({rule for task in tasks for rule in task["alone"]})
    return _TEXT.format(
        date=found["date"],
        target=found["target"],
        steps=found["steps"],
        ways="\n".join(_way(task) for task in tasks),
        count=len(tasks),
        before=_mean([task["percent"] for task in tasks]),
        missing=_missing(found["missing"]),
        note=found["note"],
        after=_mean([_end(task)[1] for task in tasks]),
        tasks=" | ".join(task["task"] for task in tasks),
        bars="|".join("---" for _ in tasks),
        alone="\n".join(
            f"| {rule} | {' | '.join(_change(task, rule) for task in tasks)} |" for rule in rules
        ),
    )


def _missing(tasks: list[str]) -> str:
    return f" Not run that day: {', '.join(tasks)}." if tasks else ""


def _way(task: dict[str, Any]) -> str:
    us, percent = _end(task)
    rules = ", then ".join(step["rule"] for step in task["way"]) or "none helps"
    return f"| {task['task']} | {_time(task['us'])} | {task['percent']:.1f} | {_time(us)} | {percent:.1f} | {rules} |"


def _end(task: dict[str, Any]) -> tuple[float, float]:
    last = task["way"][-1] if task["way"] else task
    return last["us"], last["percent"]


def _time(us: float) -> str:
    return f"{us / 1000:.3g} ms"


def _change(task: dict[str, Any], rule: str) -> str:
    us = task["alone"].get(rule)
    if us is None:
        return ""
    change = 100 * (us / task["us"] - 1)
    return "0 %" if abs(change) < 0.5 else f"{change:+.0f} %"


def _mean(numbers: list[float]) -> float:
    return exp(sum(map(log, numbers)) / len(numbers))
