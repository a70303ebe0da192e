"""PyTorch's own time: which operators run kernels, what its compiler joins, and times that others published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accelopt_profiling.pytorch.estimate import estimate_torch, fused
from accelopt_profiling.pytorch.operators import NotModelledError, TensorUse, TorchOperator, record_operators
from accelopt_profiling.quantity import Known
from accelopt_profiling.targets.target import GpuTarget, load_target


def h100() -> GpuTarget:
    target = load_target("h100")
    assert isinstance(target, GpuTarget)
    return target


def operator(
    name: str, kind: str, reads: list[int], write: int, mib: int = 256, flops: float = 0.0
) -> TorchOperator:
    uses = [TensorUse(number, mib << 20) for number in (*reads, write)]
    return TorchOperator(name, kind, tuple(uses[:-1]), (uses[-1],), flops)


def test_the_compiler_joins_what_lies_between_kernels_of_libraries() -> None:
    chain = [
        operator("mul", "pointwise", [0], 1),
        operator("mean", "reduction", [1], 2, 1),
        operator("mm", "external", [1], 3, flops=1e9),
        operator("add", "pointwise", [3, 2], 4),
        operator("relu", "pointwise", [4], 5),
    ]
    assert [[o.name for o in group] for group in fused(chain)] == [["mul", "mean"], ["mm"], ["add", "relu"]]


def test_joined_operators_move_fewer_bytes() -> None:
    chain = [operator("pointwise", "pointwise", [k], k + 1) for k in range(6)]
    times = estimate_torch(chain, h100())
    assert (times.kernels, times.compiled_kernels) == (6, 1)
    assert times.eager.us is not None
    assert times.compiled.us is not None
    assert times.eager.us == pytest.approx(6 * times.compiled.us, rel=0.1)
    assert times.eager.known is Known.ESTIMATED


def test_a_librarys_rate_decides_how_wide_the_interval_is() -> None:
    convolution = TorchOperator(
        "convolution", "external", (), (TensorUse(0, 4),), 1e12, rate="convolution 3d"
    )
    time = estimate_torch([convolution], h100()).eager
    assert time.us == pytest.approx(1e12 / (0.27 * h100()["peak.fp32"]) * 1e6, rel=0.01)
    assert time.low_us == pytest.approx(0.4 * time.us)
    assert time.high_us == pytest.approx(3.0 * time.us)


def test_small_kernels_wait_for_the_processor() -> None:
    times = estimate_torch([operator("add", "pointwise", [k], k + 1, 0) for k in range(20)], h100())
    assert times.eager.us is not None
    assert times.eager.us > 19 * h100()["model.launch_floor"]


def _gemm(torch: Any) -> Callable[[], Any]:
    a, b = torch.randn(8192, 4096, dtype=torch.float16), torch.randn(28672, 4096, dtype=torch.float16)
    return lambda: torch.matmul(a, b.T)


def _rmsnorm(torch: Any, rows: int, columns: int, residual: bool) -> Callable[[], Any]:
    x, weight = torch.randn(rows, columns, dtype=torch.bfloat16), torch.randn(columns, dtype=torch.bfloat16)

    def run() -> Any:
        wide = x.to(torch.float32)
        if residual:
            wide = wide + torch.ones_like(x).to(torch.float32)
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return ((wide * scale) * weight.to(torch.float32)).to(x.dtype)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prepare", "published_us"),
    [
        (_gemm, 2610),
        (lambda torch: _rmsnorm(torch, 520128, 128, False), 1116),
        (lambda torch: _rmsnorm(torch, 14521, 7168, True), 2390),
    ],
    ids=["gemm_n28672_k4096", "rmsnorm_h128", "fused_add_rmsnorm_h7168"],
)
def test_published_times_of_eager_references_lie_in_the_interval(
    prepare: Callable[[Any], Callable[[], Any]], published_us: float
) -> None:
    """AccelOpt's runs on an H100 (FlashInfer-Bench's references, its paper's GPU results)."""
    import torch

    time = estimate_torch(record_operators(lambda: prepare(torch)), h100()).eager
    assert time.low_us is not None
    assert time.high_us is not None
    assert time.low_us <= published_us <= time.high_us


@pytest.mark.slow
def test_what_shapes_do_not_tell_is_refused() -> None:
    import torch

    def layers() -> Callable[[], Any]:
        lstm, x = torch.nn.LSTM(8, 8), torch.randn(4, 2, 8)
        return lambda: lstm(x)

    with pytest.raises(NotModelledError):
        record_operators(layers)
    attention = record_operators(lambda: _attention(torch))
    assert [(o.kind, o.flops) for o in attention] == [("external", 4.0 * 2 * 4 * 128 * 64 * 128)]


def _attention(torch: Any) -> Callable[[], Any]:
    q = torch.randn(2, 4, 128, 64)
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q)
