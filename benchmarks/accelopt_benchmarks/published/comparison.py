"""Compare the estimate of Triton kernels with times that others measured and published.

``published.json`` has the figures, their sources, and which of them constants may be calibrated on. The kernels are our
own (``benchmarks/published_corpus``), captured at the full shapes on untouched memory; where the publication tells no
tile, the best of a few by the estimate stands for what an autotuner would choose.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from accelopt_benchmarks.checkout import PUBLISHED_CORPUS
from accelopt_benchmarks.liger.timings import zeros
from accelopt_benchmarks.result import GoalResult
from accelopt_profiling.targets import load_gpu
from nkibench.metrics import spearman

#: Programs of each launch that are interpreted: enough to see what they share, few enough for long loops.
SAMPLE = 2


@dataclass(frozen=True)
class PublishedRow:
    """One published figure as microseconds, and the estimate; ``tile`` as text.

    ``ratio`` is model / measured.
    """

    group: str
    held_out: bool
    target: str
    shape: str
    tile: str
    measured_us: float
    estimate_us: float
    low_us: float
    high_us: float
    bound: str

    @property
    def ratio(self) -> float:
        return self.estimate_us / self.measured_us

    @property
    def inside(self) -> bool:
        """True where the published time lies in the estimate's interval."""
        return self.low_us <= self.measured_us <= self.high_us


def published() -> list[dict[str, Any]]:
    """Return the groups of ``published.json``."""
    text = (resources.files(__package__) / "published.json").read_text(encoding="utf-8")
    groups: list[dict[str, Any]] = json.loads(text)["groups"]
    return groups


def compare(only: str = "") -> Iterator[PublishedRow]:
    """Yield a row for each published figure of the groups whose name holds ``only``."""
    for group in published():
        if only in group["name"]:
            for row in group["rows"]:
                yield _row(group, row)


def _row(group: dict[str, Any], row: dict[str, Any]) -> PublishedRow:
    tiles = [row["tile"]] if "tile" in row else group["tiles"]
    estimates = [
        (estimate, tile) for tile in tiles if (estimate := _estimate(group, row["shape"], tile)) is not None
    ]
    best, tile = min(estimates, key=lambda pair: pair[0].latency.us)
    latency = best.latency
    return PublishedRow(
        group["name"],
        group["set"] == "held out",
        target=group["target"],
        shape=" ".join(f"{key}={value}" for key, value in row["shape"].items()),
        tile="x".join(map(str, tile)),
        measured_us=_microseconds(group, row),
        estimate_us=latency.us,
        low_us=latency.low_us,
        high_us=latency.high_us,
        bound=best.bound,
    )


def _estimate(group: dict[str, Any], shape: dict[str, Any], tile: list[int]) -> Any:
    from accelopt_profiling.triton.capture.install import emulated
    from accelopt_profiling.triton.compilation.compile import compile_launch
    from accelopt_profiling.triton.estimation.estimate import estimate

    gpu = load_gpu(group["target"])
    with emulated(group["target"], "capture", sample=SAMPLE, hollow=True) as session:
        _kernels().RUN[group["kernel"]](zeros, shape, tile)
    (execution,) = session.executions
    if execution.error is not None or execution.counts is None:
        raise RuntimeError(f"{group['name']}: {execution.error}")
    compiled = compile_launch(execution.launch, gpu)
    return None if compiled.problem is not None else estimate(execution.counts, compiled, gpu)


_module: Any = None


def _kernels() -> Any:
    global _module
    if _module is None:
        spec = importlib.util.spec_from_file_location("published_kernels", PUBLISHED_CORPUS / "kernels.py")
        assert spec is not None
        assert spec.loader is not None
        _module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(_module)
    return _module


def _microseconds(group: dict[str, Any], row: dict[str, Any]) -> float:
    """Return the published figure as a time.

    Rates are of the operation's own work, as the publications count it.
    """
    shape, value = row["shape"], float(row["value"])
    if group["unit"] == "us":
        return value
    if group["kernel"] == "product":
        work = 2.0 * shape["m"] * shape["n"] * shape["k"]
    elif group["kernel"] == "attention":
        work = 4.0 * shape["batch"] * shape["heads"] * shape["length"] ** 2 * shape["head"]
        work = work / 2 if shape["causal"] else work
    else:
        work = 4.0 * shape["rows"] * shape["columns"]  # fp16, read and written
    rate = value * (1e12 if group["unit"] == "TFLOP/s" else 1e9)
    return float(1e6 * work / rate)


def summary(rows: Sequence[PublishedRow]) -> list[GoalResult]:
    """Return how often and how well the estimate agrees, on the figures for calibration and on the others; and the
    rank correlation of the tiles of one product."""
    results = []
    for held_out in (False, True):
        chosen = [row for row in rows if row.held_out == held_out]
        if not chosen:
            continue
        kind = "not used for calibration" if held_out else "used for calibration"
        share = 100 * sum(row.inside for row in chosen) / len(chosen)
        middle = statistics.median(row.ratio for row in chosen)
        detail = f"{len(chosen)} figures"
        goal = share >= 90 if held_out else None
        results += [
            GoalResult(f"figures {kind} inside the interval", ">= 90 %", share, "%", goal, detail),
            GoalResult(f"figures {kind}: median of estimate / published", "", middle, "x", None, detail),
        ]
    for group in dict.fromkeys(row.group for row in rows):
        tiles = [row for row in rows if row.group == group]
        if len({row.shape for row in tiles}) == 1 and len(tiles) > 2:
            rank = spearman([row.measured_us for row in tiles], [row.estimate_us for row in tiles])
            results.append(GoalResult(group, "> 0", rank, "Spearman", rank > 0, f"{len(tiles)} tiles"))
    return results
