"""Times whole gate checks of kernels of about a millisecond."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from accelopt_benchmarks.gate.corpus import TARGETS
from accelopt_benchmarks.gate.detection import processor_seconds
from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_lsp.gate_check import GateCheck, gate_requests
from accelopt_profiling.gate.gate import check
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Limits

#: Example kernels, estimated to take 0.49 and 2.2 ms on a NeuronCore, and 0.05 ms on an H100.
KERNELS = ("nki_rmsnorm.py", "nki_silu.py", "triton_softmax.py")
#: One of them with half the rows: 1.1 ms.
HALVED, ROWS, FEWER_ROWS = "nki_silu.py", "m=4096", "m=2048"
SECONDS = 2.0
_REWRITTEN = (
    "\n\n# A candidate: the same kernel, so that it is compared with an original besides the reference.\n"
)


async def gate_time(examples: Path, rounds: int, kernels: Sequence[str] = KERNELS) -> list[GoalResult]:
    """Return for each kernel the median of ``rounds`` whole checks, one at a time, on a warm worker."""
    host = LocalHost()
    paths = [examples.resolve() / name for name in kernels]
    with TemporaryDirectory() as folder:
        if HALVED in kernels:
            paths.append(await asyncio.to_thread(_halved, examples / HALVED, Path(folder)))
        try:
            return [row for path in paths for row in await _rows(host, path, rounds)]
        finally:
            await host.close()


def _halved(path: Path, folder: Path) -> Path:
    text = path.read_text(encoding="utf-8")
    if ROWS not in text:
        raise ValueError(f"{path} does not say {ROWS}")
    fewer = folder / f"{path.stem}_half_the_rows.py"
    fewer.write_text(text.replace(ROWS, FEWER_ROWS), encoding="utf-8")
    return fewer


async def _rows(host: Host, path: Path, rounds: int) -> list[GoalResult]:
    await _once(host, path)
    walls, busy = [], []
    for _ in range(rounds):
        wall, processor, refused = await _once(host, path)
        if refused:
            return [not_measured(f"gate time, {path.name}", f"<= {SECONDS:g} s", f"refused: {refused}")]
        walls.append(wall)
        busy.append(processor)
    seconds = median(walls)
    how = f"wall, besides the reference; {min(walls):.2f} to {max(walls):.2f} s in {rounds}; processor time with it "
    how += f"{median(busy):.2f} s; load {os.getloadavg()[0]:.1f}"
    return [GoalResult(f"gate time, {path.name}", f"<= {SECONDS:g} s", seconds, "s", seconds <= SECONDS, how)]


async def _once(host: Host, path: Path) -> tuple[float, float, str]:
    """Seconds of a check less those of the reference, processor seconds of all of it, and why it was refused."""
    text = await asyncio.to_thread(path.read_text, encoding="utf-8")
    beside = path.with_name(f"{path.stem}_problem.py")
    problem = beside if beside.exists() else path
    gate_check = GateCheck(
        path,
        text + _REWRITTEN,
        original=text,
        problem=problem,
        root=path.parent,
        targets=TARGETS,
        limits=Limits(seconds=60),
    )
    (request,) = gate_requests(gate_check, ship_imports=False)
    began, before = time.perf_counter(), processor_seconds()
    verdict, receipt = await check(host, request)
    seconds, busy = time.perf_counter() - began, processor_seconds() - before
    refused = "" if verdict.accepted else "; ".join(reason.message for reason in verdict.reasons)
    return seconds - float(receipt.body["steps"].get("gate.reference", 0.0)), busy, refused
