"""Profiles the 184 files of TritonBench-G, kernels from public repositories with calls of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Limits
from accelopt_profiling.profiler import ProfileRequest, profile

FILES = "data/TritonBench_G_v1"
_AT_ONCE, _SECONDS = 2, 90.0


@dataclass(frozen=True)
class FileOutcome:
    """``trouble`` is why a file, or a kernel that it launches, has no time; ``outside`` tells of accesses out of
    bounds, which are the file's."""

    file: str
    trouble: str | None
    outside: bool


async def triton_bench(data: Sequence[Path]) -> list[GoalResult]:
    """Search the files of TritonBench-G; ``data`` holds checkouts."""
    what, goal = "files of TritonBench-G that profile unedited", "none set"
    folder = next((folder / FILES for folder in data if (folder / FILES).is_dir()), None)
    if folder is None:
        return [not_measured(what, goal, "give a checkout of thunlp/TritonBench with --data")]
    host, places = LocalHost(), asyncio.Semaphore(_AT_ONCE)

    async def look(path: Path) -> FileOutcome:
        async with places:
            return await _profiled(host, path)

    try:
        outcomes = await asyncio.gather(*(look(path) for path in sorted(folder.glob("*.py"))))
    finally:
        await host.close()
    failed = [o for o in outcomes if o.trouble is not None]
    outside = sum(o.outside for o in outcomes)
    share = 100 * (1 - len(failed) / len(outcomes))
    detail = f"{len(outcomes)} files; {outside} access memory out of bounds by their own calls; " + "; ".join(
        f"{o.file}: {o.trouble}" for o in failed
    )
    return [GoalResult(what, goal, share, "%", None, detail)]


async def _profiled(host: LocalHost, path: Path) -> FileOutcome:
    limits = Limits(seconds=_SECONDS)
    request = ProfileRequest(examine(path, path.read_text()), {"triton": "h100"}, limits=limits)
    async with aclosing(profile(host, request)) as growing:
        last = [measurement async for measurement in growing][-1]
    codes = {f.code for k in last.kernels for f in k.findings}
    launched = [k for k in last.kernels if not any(f.code == "never-launched" for f in k.findings)]
    findings = [*last.findings, *(f for k in launched for f in k.findings)]
    wrong = [f.message for f in findings if f.severity == "error" and f.code != "out-of-bounds"]
    timeless = [k.name for k in launched if k.latency.us is None]
    trouble = None
    if wrong or timeless or not launched:
        trouble = (wrong or [f"no time for {', '.join(timeless)}" if timeless else "launches nothing"])[0]
    return FileOutcome(path.name, trouble, "out-of-bounds" in codes)
