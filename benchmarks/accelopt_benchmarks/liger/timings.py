"""Compares estimates with measured times: Liger-Kernel's public benchmark data and its kernels.

The data is ``benchmark/data/all_benchmark_data.csv`` of linkedin/Liger-Kernel (BSD-2-Clause): medians of
``triton.testing.do_bench`` in milliseconds on several GPUs. The kernels come from an unpacked ``liger-kernel`` wheel.
Neither is part of this repository; only forward passes that are one Triton launch and nothing else of weight are
compared. Run as a program, in a process of its own (it executes the package's host code)::

    python -m accelopt_benchmarks.liger.timings DATA.csv FOLDER_WITH_liger_kernel [--json]
"""

from __future__ import annotations

import csv
import json
import math
import os
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nkibench.metrics import spearman

TARGETS = {
    "NVIDIA A100-SXM4-80GB": "a100",
    "NVIDIA H100 80GB HBM3": "h100",
    "NVIDIA H100 PCIe": "h100_pcie",
    "NVIDIA B200": "b200",
    "NVIDIA GeForce RTX 3090": "rtx3090",
}
CALIBRATED_ON = {
    ("rope", "a100"),
    ("relu_squared", "h100"),
}  # gave two constants of their targets, see the JSON files
GOAL_LOW, GOAL_HIGH, GOAL_ABOVE_US = 0.75, 4 / 3, 40.0


@dataclass(frozen=True)
class PublishedTiming:
    """One shape: what was measured and what the model says, in microseconds.

    ``ratio`` is model / measured.
    """

    kernel: str
    target: str
    shape: str
    measured_us: float
    estimate_us: float
    low_us: float
    high_us: float
    bound: str
    percent_of_peak: float

    @property
    def ratio(self) -> float:
        return self.estimate_us / self.measured_us

    @property
    def within_goal(self) -> bool:
        """Whether the measurement lies within -25 % and +33 % of the estimate."""
        return GOAL_LOW <= self.measured_us / self.estimate_us <= GOAL_HIGH


def compare(data_csv: Path, liger_path: Path, kernels: Iterable[str] = ()) -> list[PublishedTiming]:
    """Estimate every comparable shape of the benchmark data (or those of ``kernels``).

    ``liger_path`` is the folder that holds the ``liger_kernel`` package.

    Raises:
        FileNotFoundError: the data or the package is not there.
    """
    if not (liger_path / "liger_kernel" / "ops").is_dir():
        raise FileNotFoundError(f"{liger_path} holds no liger_kernel package; unpack its wheel there")
    kernel_names = set(kernels) or set(CASES)
    rows = []
    with data_csv.open(encoding="utf-8", newline="") as file:
        for entry in csv.DictReader(file):
            if (
                entry["kernel_name"] in kernel_names
                and entry["kernel_provider"] == "liger"
                and entry["kernel_operation_mode"] == "forward"
                and entry["metric_name"] == "speed"
                and entry["gpu_name"] in TARGETS
            ):
                rows.append(_row(entry, liger_path))
    return rows


def _row(entry: dict[str, str], liger_path: Path) -> PublishedTiming:
    from accelopt_profiling.targets import load_gpu
    from accelopt_profiling.triton.capture.install import emulated
    from accelopt_profiling.triton.compilation.compile import compile_launch
    from accelopt_profiling.triton.estimation.estimate import estimate

    name, config = entry["kernel_name"], json.loads(entry["extra_benchmark_config_str"])
    size = int(float(entry["x_value"]))
    target = TARGETS[entry["gpu_name"]]
    gpu = load_gpu(target)
    with emulated(target, "capture", sample=4, hollow=True) as session:
        if str(liger_path) not in sys.path:
            sys.path.insert(0, str(liger_path))
        CASES[name]({**config, entry["x_name"]: size})
    total = low = high = peak = 0.0
    bound = ""
    for execution in session.executions:
        if execution.tuning:
            continue
        if execution.error is not None or execution.counts is None:
            raise RuntimeError(f"{name} {size}: {execution.launch.name} could not be run: {execution.error}")
        launch_estimate = estimate(execution.counts, compile_launch(execution.launch, gpu), gpu)
        latency = launch_estimate.latency
        assert latency.us is not None
        assert latency.low_us is not None
        assert latency.high_us is not None
        assert launch_estimate.percent_of_peak.value is not None
        if latency.us > total:
            bound, peak = launch_estimate.bound, launch_estimate.percent_of_peak.value
        total, low, high = total + latency.us, low + latency.low_us, high + latency.high_us
    shape = f"{entry['x_name']}={size} " + " ".join(str(v) for v in config.values() if isinstance(v, int))
    return PublishedTiming(
        name,
        target,
        shape=shape,
        measured_us=1e3 * float(entry["y_value_50"]),
        estimate_us=total,
        low_us=low,
        high_us=high,
        bound=bound,
        percent_of_peak=peak,
    )


def zeros(*shape: int, dtype: str = "float32", integer: bool = False) -> Any:
    """Storage that the system hands out on first touch: full-size shapes cost the sampled programs' pages only.

    It begins where a device's would, at a multiple of 512 bytes, so that rows cover no more sectors than there.
    """
    import numpy as np
    import torch

    kind = torch.int64 if integer else getattr(torch, dtype.removeprefix("torch."))
    nbytes = math.prod(shape) * kind.itemsize
    pages = np.zeros(nbytes + 512, np.uint8)
    start = -pages.ctypes.data % 512
    return torch.from_numpy(pages[start : start + nbytes]).view(kind).view(shape)


def _layer_norm(c: dict[str, Any]) -> None:
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction

    x, w = zeros(c["M"], c["N"], dtype=c["dtype"]), zeros(c["N"], dtype=c["dtype"])
    LigerLayerNormFunction.apply(x, w, w.clone(), c["eps"])


def _rms_norm(c: dict[str, Any]) -> None:
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    LigerRMSNormFunction.apply(zeros(c["M"], c["H"], dtype=c["dtype"]), zeros(c["H"]), c["eps"])


def _megatron_rms_norm(c: dict[str, Any]) -> None:
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    x = zeros(c["S"], c["B"], c["H"], dtype="bfloat16")
    LigerRMSNormFunction.apply(x, zeros(c["H"], dtype="bfloat16"), 1e-6)


def _relu_squared(c: dict[str, Any]) -> None:
    from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction

    LigerReLUSquaredFunction.apply(zeros(c["M"], c["N"], dtype=c["dtype"]))


def _softmax(c: dict[str, Any]) -> None:
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    LigerSoftmaxFunction.apply(zeros(c["M"], c["N"], dtype=c["dtype"]))


def _tvd(c: dict[str, Any]) -> None:
    from liger_kernel.ops.tvd import LigerTVDLossFunction

    rows = c["B"] * c["T"]
    LigerTVDLossFunction.apply(zeros(rows, c["V"]), zeros(rows, c["V"]), None, "batchmean", -100)


def _kl_div(c: dict[str, Any]) -> None:
    from liger_kernel.ops.kl_div import LigerKLDivLossFunction

    rows = c["B"] * c["T"]
    LigerKLDivLossFunction.apply(zeros(rows, c["V"]), zeros(rows, c["V"]), "batchmean", False, 1e-10)


def _cross_entropy(c: dict[str, Any]) -> None:
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

    rows = c["B"] * c["T"]
    x = zeros(rows, c["V"]).requires_grad_()
    LigerCrossEntropyFunction.apply(
        x, zeros(rows, integer=True), None, -100, 0.0, 0.0, "mean", None, False, False, False
    )


def _swiglu(c: dict[str, Any]) -> None:
    from liger_kernel.ops.swiglu import LigerFusedGateUpSiLUMulFunction

    y = zeros(c["S"] * c["B"], 2 * c["ffn_local"], dtype="bfloat16")
    LigerFusedGateUpSiLUMulFunction.apply(y, False)


def _embedding(c: dict[str, Any]) -> None:
    import torch
    from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

    count = c["B"] * c["T"]
    indices = (torch.arange(count, device="cuda") * 7919) % c["V"]
    LigerEmbeddingFunction.apply(zeros(c["V"], c["D"], dtype=c["dtype"]), indices.view(c["B"], c["T"]))


def _group_norm(c: dict[str, Any]) -> None:
    from liger_kernel.ops.group_norm import LigerGroupNormFunction

    channels = c["C"]
    x, w = zeros(c["M"], channels, c["H"], dtype=c["dtype"]), zeros(channels, dtype=c["dtype"])
    LigerGroupNormFunction.apply(x, w, w.clone(), channels, channels // c["channels_per_group"], c["eps"])


def _rope(c: dict[str, Any]) -> None:
    from liger_kernel.ops.rope import LigerRopeFunction

    tokens, hidden = c["T" if "T" in c else "seq_len"], c["H" if "H" in c else "hidden_size"]
    head = hidden // c["num_q_heads"]
    q = zeros(1, tokens, c["num_q_heads"], head, dtype=c["dtype"]).transpose(1, 2)
    k = zeros(1, tokens, c["num_kv_heads"], head, dtype=c["dtype"]).transpose(1, 2)
    cos = zeros(1, tokens, head, dtype=c["dtype"])
    LigerRopeFunction.apply(q, k, cos, cos.clone())


CASES: dict[str, Callable[[dict[str, Any]], None]] = {
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "megatron_rms_norm": _megatron_rms_norm,
    "relu_squared": _relu_squared,
    "tvd": _tvd,
    "kl_div": _kl_div,
    "cross_entropy": _cross_entropy,
    "megatron_swiglu": _swiglu,
    "softmax": _softmax,
    "embedding": _embedding,
    "group_norm": _group_norm,
    "rope": _rope,
}


def share_within_goal(rows: Iterable[PublishedTiming]) -> float:
    """Return the share (0..1) of the shapes measured above 40 us that lie within -25 % and +33 % of the
    estimate."""
    large = [row for row in rows if row.measured_us > GOAL_ABOVE_US]
    return sum(row.within_goal for row in large) / len(large) if large else 0.0


def table(rows: list[PublishedTiming]) -> str:
    """Return one line per shape, then one per kernel and the totals."""
    out = [
        f"{r.kernel:18} {r.target:10} {r.shape:34} {r.measured_us:9.1f} us  model {r.estimate_us:9.1f} "
        f"({r.low_us:.1f}..{r.high_us:.1f})  ratio {r.ratio:.2f}  {r.bound} {r.percent_of_peak:.0f} %"
        f"{'' if r.within_goal else '  OUTSIDE'}"
        for r in rows
    ]
    for kernel, target in dict.fromkeys((r.kernel, r.target) for r in rows):
        ratios = [r.ratio for r in rows if (r.kernel, r.target) == (kernel, target)]
        out.append(
            f"{kernel} on {target}: model/measured {min(ratios):.2f}..{max(ratios):.2f}, {len(ratios)} shapes"
        )
    large = [r for r in rows if r.measured_us > GOAL_ABOVE_US]
    if large:
        inside = sum(r.low_us <= r.measured_us <= r.high_us for r in large)
        out.append(
            f"above {GOAL_ABOVE_US:.0f} us: {len(large)} shapes, median ratio "
            f"{statistics.median(r.ratio for r in large):.3f}, {100 * share_within_goal(rows):.0f} % within -25/+33 %, "
            f"{100 * inside / len(large):.0f} % inside their interval"
        )
        held_out = [r for r in large if (r.kernel, r.target) not in CALIBRATED_ON]
        out.append(
            f"of these without the kernels the constants were calibrated on: {len(held_out)} shapes, "
            f"{100 * share_within_goal(held_out):.0f} % within -25/+33 %"
        )
        for target in dict.fromkeys(r.target for r in held_out):
            of_one = [r for r in held_out if r.target == target]
            rank = spearman([r.measured_us for r in of_one], [r.estimate_us for r in of_one])
            out.append(f"rank correlation on {target}: {rank:.3f}, {len(of_one)} of these shapes")
    inside = sum(r.low_us <= r.measured_us <= r.high_us for r in rows)
    out.append(f"all: {len(rows)} shapes, {100 * inside / max(1, len(rows)):.0f} % inside their interval")
    return "\n".join(out)


def main() -> None:
    data, package, *rest = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the package prints is no answer
    rows = compare(Path(data), Path(package), [name for name in rest if name != "--json"])
    print(
        json.dumps([asdict(row) for row in rows]) if "--json" in rest else table(rows),
        file=answers,
        flush=True,
    )


if __name__ == "__main__":
    main()
