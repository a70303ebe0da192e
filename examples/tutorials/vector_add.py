# ruff: noqa: PT018 - written as a user would
"""Element-wise sum, in the style of an introductory tutorial: a kernel, a wrapper, a check, a benchmark."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def sum_kernel(a_ptr, b_ptr, c_ptr, size, TILE: tl.constexpr):
    start = tl.program_id(axis=0) * TILE
    where = start + tl.arange(0, TILE)
    valid = where < size
    total = tl.load(a_ptr + where, mask=valid) + tl.load(b_ptr + where, mask=valid)
    tl.store(c_ptr + where, total, mask=valid)


def vector_sum(a: torch.Tensor, b: torch.Tensor):
    c = torch.empty_like(a)
    assert a.device == DEVICE and b.device == DEVICE and c.device == DEVICE
    size = c.numel()
    sum_kernel[lambda meta: (triton.cdiv(size, meta["TILE"]),)](a, b, c, size, TILE=1024)
    return c


torch.manual_seed(0)
size = 98432
a = torch.rand(size, device=DEVICE)
b = torch.rand(size, device=DEVICE)
expected = a + b
result = vector_sum(a, b)
print(f"largest difference: {torch.max(torch.abs(expected - result))}")


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["size"],
        x_vals=[2**i for i in range(14, 22)],
        line_arg="provider",
        line_vals=["triton", "torch"],
        line_names=["Triton", "Torch"],
        ylabel="GB/s",
        plot_name="vector-sum",
        args={},
    )
)
def benchmark(size, provider):
    a = torch.rand(size, device=DEVICE, dtype=torch.float32)
    b = torch.rand(size, device=DEVICE, dtype=torch.float32)
    quantiles = [0.5, 0.2, 0.8]
    function = (lambda: a + b) if provider == "torch" else (lambda: vector_sum(a, b))
    ms, low, high = triton.testing.do_bench(function, quantiles=quantiles)
    return tuple(3 * a.numel() * a.element_size() * 1e-9 / (t * 1e-3) for t in (ms, high, low))


benchmark.run(print_data=True, show_plots=True)
