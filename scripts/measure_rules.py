"""How each NKI rule moves the estimate of NKIBench's baselines, and how far rules alone come when the best of them is
applied again and again: what docs/rules.md shows.

    python scripts/measure_rules.py --out measured.jsonl [--steps 3] [--tasks silu,matmul]

Goes on where it stopped. No gate is asked: the search does that with what it offers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from accelopt_agent.profiled import ProfiledCost
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.rules.catalogue import proposals
from accelopt_agent.tools import CostUnknown
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Limits
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement
from nkibench.subject import Subject, own_subjects


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--tasks", default="")
    asked = parser.parse_args()
    done = asked.out.read_text().splitlines() if asked.out.exists() else []
    known = {json.loads(line)["task"] for line in done}
    host = LocalHost()
    try:
        for subject in own_subjects([name for name in asked.tasks.split(",") if name]).ready:
            if subject.name not in known:
                result = await measure(host, subject, asked.steps)
                with asked.out.open("a") as file:
                    file.write(json.dumps(result) + "\n")
                print(json.dumps(result), flush=True)
    finally:
        await host.close()


async def measure(host: LocalHost, subject: Subject, steps: int) -> dict[str, Any]:
    """The effect of each rule alone, as the fastest of its rewrites, and the way of the best rules."""
    text = subject.kernel.read_text()
    problem = subject.reference.relative_to(subject.root).as_posix()
    limits = Limits(seconds=1200.0, memory_bytes=24 << 30)
    request = OptimizeRequest(
        path=subject.kernel, text=text, target="trn1", root=subject.root, problem=problem, limits=limits
    )
    cost = ProfiledCost(host, request)
    start = now = (await cost.baseline()).kernels[0]
    alone: dict[str, float] = {}
    way: list[dict[str, Any]] = []
    seen = {text}
    for step in range(steps):
        found: list[tuple[float, str, str, str, KernelMeasurement]] = []
        for candidate in _few(text, now):
            if candidate.text in seen:
                continue
            seen.add(candidate.text)
            try:
                measured = await cost.cost(candidate.text, start.name)
            except CostUnknown:
                continue
            us = measured.latency.us
            if us is not None:
                rule = candidate.origin.removeprefix("rule:")
                found.append((us, rule, candidate.summary, candidate.text, measured))
                if step == 0:
                    alone[rule] = min(us, alone.get(rule, us))
        best = min(found, default=None, key=lambda f: f[0])
        if best is None or now.latency.us is None or best[0] >= now.latency.us * 0.995:
            break
        us, rule, summary, text, now = best
        way.append({"rule": rule, "summary": summary, "us": us, "percent": now.percent_of_peak})
    return {
        "task": subject.name, "us": start.latency.us, "percent": start.percent_of_peak, "bound": start.bound,
        "alone": alone, "way": way,
    }  # fmt: skip


def _few(text: str, measured: KernelMeasurement) -> list[Any]:
    """At most three rewrites of each rule."""
    kernel = next(k for k in find_kernels(text).kernels if k.name == measured.name)
    chosen: dict[str, list[Any]] = {}
    for candidate in proposals(text, kernel, measured, "trn1"):
        chosen.setdefault(candidate.origin, []).append(candidate)
    return [candidate for candidates in chosen.values() for candidate in candidates[:3]]


if __name__ == "__main__":
    asyncio.run(main())
