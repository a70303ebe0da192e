"""Kernels that ``torch.compile`` wrote are profiled, by themselves and by the benchmark at their end."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command

pytestmark = [pytest.mark.slow, pytest.mark.triton]

ROWS = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties, ReductionHint
triton_helpers.set_driver_to_gpu()

@triton_heuristics.reduction(
    size_hints={'x': 512, 'r0_': 2048},
    reduction_hint=ReductionHint.INNER,
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32', 'r0_numel': 'i32',
        'XBLOCK': 'constexpr', 'R0_BLOCK': 'constexpr'}, 'device': DeviceProperties(type='cuda', index=0,
        multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048, warp_size=32), 'constants': {}},
    inductor_meta={'grid_type': 'Grid1D', 'kernel_name': 'rows', 'num_load': 1, 'num_reduction': 1},
)
@triton.jit
def rows(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr):
    xnumel = 512
    r0_numel = 2048
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    total = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
    for r0_offset in range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        total += tl.load(in_ptr0 + (r0_index + 2048*xindex), r0_mask & xmask, other=0.0)
    tl.store(out_ptr0 + (xindex), tl.sum(total, 1)[:, None], xmask)
"""
OWN_RUN = """

from torch._C import _cuda_getCurrentRawStream as get_raw_stream
import torch

def call(args):
    with torch.cuda._DeviceGuard(0):
        rows.run(*args, 512, 2048, stream=get_raw_stream(0))

if __name__ == '__main__':
    from torch._inductor.runtime.benchmarking import benchmarker
    args = torch.rand(512, 2048, device='cuda'), torch.empty(512, device='cuda')
    print(benchmarker.benchmark_gpu(lambda: call(args), rep=40))
    assert torch.allclose(args[1], args[0].sum(1))
"""


@pytest.mark.parametrize("own_run", ["", OWN_RUN])
def test_a_kernel_is_profiled_with_inductors_configurations(
    accelopt: Command, home: Path, own_run: str
) -> None:
    (home / "rows.py").write_text(ROWS + own_run, encoding="utf-8")
    profiled = accelopt("profile", "rows.py", "--target", "h100", "--json")
    assert profiled.code == 0, profiled.out
    (kernel,) = profiled.object["kernels"]
    assert kernel["latency"]["us"] > 0
    assert not [f for f in kernel["findings"] if f["severity"] == "error"]
    assert kernel["quantities"]["load_bytes"]["value"] == pytest.approx(512 * 2048 * 4, rel=0.1)
