"""Programs that run side by side leave the same bits in memory as programs that run one by one."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.capture.session import OutOfBoundsError
from accelopt_profiling.triton.interpreter import batches

pytestmark = pytest.mark.triton


@triton.jit
def softmax(x, out, columns, B: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, B)
    inside = tl.arange(0, B) < columns
    row = tl.load(x + at, mask=inside, other=-float("inf"))
    power = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + at, power / tl.sum(power, axis=0), mask=inside)


@triton.jit
def product(a, b, out, M, N, K, T: tl.constexpr):
    rows = tl.program_id(0) * T + tl.arange(0, T)
    columns = tl.program_id(1) * T + tl.arange(0, T)
    total = tl.zeros((T, T), dtype=tl.float32)
    for k in range(0, K, T):
        inner = k + tl.arange(0, T)
        left = tl.load(
            a + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0
        )
        right = tl.load(
            b + inner[:, None] * N + columns, mask=(inner[:, None] < K) & (columns < N), other=0.0
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(
        out + rows[:, None] * N + columns,
        total.to(out.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns < N),
    )


@triton.jit
def _larger(a, i, b, j):
    first = (a > b) | ((a == b) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def _affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def reductions(x, out, places, B: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    block = tl.load(x + pid * B * B + at)
    line = tl.arange(0, B)
    tl.store(out + pid * 8 * B + line, tl.sum(block, axis=0))
    tl.store(out + pid * 8 * B + B + line, tl.max(block, axis=-1))
    best, where = tl.reduce((block, at), 1, _larger)
    tl.store(out + pid * 8 * B + 2 * B + line, best)
    tl.store(places + pid * 4 * B + line, where)
    tl.store(places + pid * 4 * B + B + line, tl.argmin(block, axis=0))
    smallest = tl.min(block, axis=1, keep_dims=True)
    tl.store(out + pid * 8 * B + 3 * B + line[:, None], smallest)
    tl.store(out + pid * 8 * B + 4 * B, tl.sum(block))
    tl.store(out + pid * 8 * B + 4 * B + 1, tl.max(tl.abs(block)))
    running = tl.cumsum(block, axis=1)
    tl.store(out + pid * 8 * B + 5 * B + line, tl.sum(running * running, axis=1))
    _, scanned = tl.associative_scan((block * 0.1, block), 0, _affine, reverse=True)
    tl.store(out + pid * 8 * B + 6 * B + line, tl.sum(scanned, axis=0))
    tl.store(out + pid * 8 * B + 7 * B + line, tl.sort(tl.sum(block, axis=1)))


@triton.jit
def shapes(x, out, B: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    block = tl.load(x + pid * B * B + at)
    even, odd = tl.split(tl.reshape(block, (B, B // 2, 2)))
    joined = tl.reshape(tl.join(odd, even), (B, B))
    turned = tl.trans(joined) + block.T * 2.0 + tl.broadcast_to(tl.expand_dims(tl.sum(block, 0), 0), (B, B))
    picked = tl.gather(block, tl.broadcast_to(((tl.arange(0, B) + pid) % B)[None, :], (B, B)), axis=1)
    pages = tl.permute(tl.reshape(turned, (2, B // 2, B)), (1, 2, 0))
    tl.store(
        out + pid * B * B + at, tl.reshape(pages, (B, B)) + picked + tl.where(pid % 2 == 0, block, -block)
    )


@triton.jit
def arithmetic(x, out, n, scale, B: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * B + tl.arange(0, B)
    inside = at < n
    value = tl.load(x + at, mask=inside)
    whole = (value * 100).to(tl.int32)
    mixed = (whole // (pid + 1)) % 7 + (whole >> 2) ^ (at & pid) | (whole << 1)
    mixed = (
        tl.where(mixed > 3, mixed, -mixed) + tl.cdiv(pid, 3) + tl.minimum(pid, 5) + tl.umulhi(at, at * 12345)
    )
    noise = tl.rand(pid, tl.arange(0, B))
    low = (value * scale + tl.sqrt(tl.abs(value)) * pid).to(tl.bfloat16)
    result = low.to(tl.float32) + mixed.to(tl.float32) + noise + tl.fma(value, value, value) + tl.erf(value)
    flags = (value > 0) and (pid > 2)
    result = tl.where(flags, result, tl.clamp(result, -1.0, 1.0)) + value.to(tl.int32, bitcast=True) % 5
    tl.store(out + at, result, mask=inside)


@triton.jit
def block_pointers(x, out, M, N, T: tl.constexpr):
    start = tl.program_id(0) * T
    source = tl.make_block_ptr(x, (M, N), (N, 1), (start, 0), (T, T), (1, 0))
    target = tl.make_block_ptr(out, (M, N), (N, 1), (start, 0), (T, T), (1, 0))
    for _ in range(0, N, T):
        block = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, block * 2 + tl.sum(block), boundary_check=(0, 1))
        source, target = tl.advance(source, (0, T)), tl.advance(target, (0, T))


@triton.jit
def descriptors(x, out, M, N, T: tl.constexpr):
    source = tl.make_tensor_descriptor(x, (M, N), (N, 1), (T, T))
    target = tl.make_tensor_descriptor(out, (M, N), (N, 1), (T, T))
    row, column = tl.program_id(0) * T, tl.program_id(1) * T
    target.store([row, column], source.load([row, column]) * 3)


@triton.jit
def causal(x, out, B: tl.constexpr):
    pid = tl.program_id(0)
    total = tl.zeros((B,), dtype=tl.float32)
    for block in range(0, pid // 4 + 1):
        total += tl.load(x + block * B + tl.arange(0, B)) * (block + 1)
    if pid == 3:
        total = -total
    while tl.max(total) > 100.0:
        total = total / 2
    tl.store(out + pid * B + tl.arange(0, B), total)


@triton.jit
def in_place(x, B: tl.constexpr):
    at = x + tl.program_id(0) * B + tl.arange(0, B)
    tl.store(at, tl.load(at) * 2 + 1)
    tl.store(at, tl.load(at) * 3)


@triton.jit
def one_place(x, out):
    tl.store(out, tl.program_id(0).to(tl.float32))
    tl.store(out + 1, tl.load(x))
    tl.store(out + 2 + tl.arange(0, 4), tl.load(x + tl.arange(0, 4)) + tl.program_id(0))


@triton.jit
def counted(x, total, order, B: tl.constexpr):
    pid = tl.program_id(0)
    tl.atomic_add(total + tl.arange(0, B), tl.load(x + pid * B + tl.arange(0, B)))
    tl.store(order + pid, tl.atomic_add(total + B, 1.0))


@triton.jit
def past_the_end(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at), mask=at < n)


@triton.jit
def stumbles(out, B: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(out + pid * B + tl.arange(0, B), 1.0)
    for _ in range(0, 1, 6 - pid):
        tl.store(out + pid * B, 2.0)


def _drawn(*shape, dtype=torch.float32):
    return torch.randn(shape, device="cuda").to(dtype)


def _softmax():
    x = _drawn(300, 77)
    out = torch.empty_like(x)
    return softmax, (300,), (x, out, 77, 128), out


def _product(dtype=torch.float32):
    a, b = _drawn(90, 70, dtype=dtype), _drawn(70, 80, dtype=dtype)
    out = torch.empty(90, 80, device="cuda", dtype=dtype)
    return product, (6, 5), (a, b, out, 90, 80, 70, 16), out


def _reductions():
    x, out, places = (
        _drawn(20, 8, 8),
        torch.zeros(20, 8, 8, device="cuda"),
        torch.zeros(20, 4, 8, device="cuda").int(),
    )
    return reductions, (20,), (x, out, places, 8), out


def _shapes():
    x = _drawn(12, 8, 8)
    out = torch.empty_like(x)
    return shapes, (12,), (x, out, 8), out


def _arithmetic():
    x = _drawn(1000)
    out = torch.empty_like(x)
    return arithmetic, (32,), (x, out, 1000, 0.3, 32), out


def _block_pointers():
    x = _drawn(61, 30)
    out = torch.empty_like(x)
    return block_pointers, (16,), (x, out, 61, 30, 4), out


def _descriptors():
    x = _drawn(64, 32)
    out = torch.empty_like(x)
    return descriptors, (16, 8), (x, out, 64, 32, 4), out


def _causal():
    x, out = _drawn(16, 16).abs() * 20, torch.empty(64, 16, device="cuda")
    return causal, (64,), (x, out, 16), out


def _in_place():
    x = _drawn(24, 16)
    return in_place, (24,), (x, 16), x


@triton.jit
def persistent(x, out, tiles, B: tl.constexpr):
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        at = tile * B + tl.arange(0, B)
        tl.store(out + at, tl.load(x + at) * tile)


def _persistent():
    x = _drawn(48, 8)
    return persistent, (16,), (x, torch.empty_like(x), 48, 8), x


def _one_place():
    out = torch.zeros(6, device="cuda")
    return one_place, (40,), (_drawn(8), out), out


def _counted():
    x, total, order = _drawn(24, 16), torch.zeros(17, device="cuda"), torch.zeros(24, device="cuda")
    return counted, (24,), (x, total, order, 16), torch.stack([total[:16], order[:16]])


@pytest.fixture
def left_over(monkeypatch):
    """Count the programs of each launch that were run one by one."""
    counts, run = [], batches.Batches.run

    def spy(self, programs):
        rest = run(self, programs)
        counts.append(len(rest))
        return rest

    monkeypatch.setattr(batches.Batches, "run", spy)
    return counts


def _memory(case, monkeypatch, together: bool) -> list[torch.Tensor]:
    with monkeypatch.context() as patch, emulated("h100", "execute"):
        if not together:
            patch.setattr(batches, "FEWEST", 1 << 30)
        torch.manual_seed(0)
        kernel, grid, arguments, _ = case()
        kernel[grid](*arguments)
        return [a.clone() for a in arguments if isinstance(a, torch.Tensor)]


@pytest.mark.parametrize(
    ("case", "alone"),
    [
        (_softmax, 0), (_product, 0), (lambda: _product(torch.bfloat16), 0), (lambda: _product(torch.float16), 0),
        (_reductions, 0), (_shapes, 0), (_arithmetic, 0), (_block_pointers, 0), (_descriptors, 0), (_in_place, 0),
        (_one_place, 0), (_counted, 24), (_persistent, 0),
    ],
    ids=[
        "softmax", "product", "product-bf16", "product-fp16", "reductions", "shapes", "arithmetic", "block-pointers",
        "descriptors", "in-place", "one-place", "atomics-are-run-one-by-one", "persistent",
    ],
)  # fmt: skip
def test_leaves_the_same_bits(case, alone, monkeypatch, left_over):
    expected = _memory(case, monkeypatch, together=False)
    left_over.clear()
    memory = _memory(case, monkeypatch, together=True)
    assert sum(left_over) == alone
    for one, other in zip(memory, expected, strict=True):
        assert torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


@pytest.mark.slow
def test_programs_that_go_other_ways_are_divided(monkeypatch, left_over):
    expected = _memory(_causal, monkeypatch, together=False)
    left_over.clear()
    memory = _memory(_causal, monkeypatch, together=True)
    assert all(torch.equal(a, b) for a, b in zip(memory, expected, strict=True))
    assert sum(left_over) <= 64


@pytest.mark.parametrize("together", [True, False])
def test_an_access_out_of_bounds_is_told_as_one_by_one(together, monkeypatch):
    if not together:
        monkeypatch.setattr(batches, "FEWEST", 1 << 30)
    with emulated("h100", "execute"):
        x, out = torch.zeros(100, device="cuda"), torch.zeros(160, device="cuda")
        with pytest.raises(OutOfBoundsError) as raised:
            past_the_end[(10,)](x, out, 160, B=16)
    assert raised.value.fault.program == (6, 0, 0)
    assert (raised.value.fault.lanes, raised.value.fault.programs) == (60, 4)


@pytest.mark.parametrize("together", [True, False])
def test_what_a_kernel_raises_leaves_what_the_programs_before_wrote(together, monkeypatch):
    if not together:
        monkeypatch.setattr(batches, "FEWEST", 1 << 30)
    with emulated("h100", "execute"):
        out = torch.zeros(16, 4, device="cuda")
        with pytest.raises(ValueError, match="must not be zero"):
            stumbles[(16,)](out, B=4)
    assert out[:7].sum() == 28 + 6
    assert out[7:].sum() == 0


def test_another_result_than_one_by_one_is_not_taken(monkeypatch, left_over):
    """The first check on this way of running: were an operation wrong here, programs would run one by one."""
    from accelopt_profiling.triton.interpreter.lockstep import LockstepBuilder

    right = LockstepBuilder.create_splat

    def first_of_all(self, ret_ty, arg):
        value = right(self, ret_ty, arg)
        value.data = value.data if self.lanes is None else value.data[:1]
        return value

    expected = _memory(_in_place, monkeypatch, together=False)
    monkeypatch.setattr(LockstepBuilder, "create_splat", first_of_all)
    left_over.clear()
    memory = _memory(_in_place, monkeypatch, together=True)
    assert torch.equal(memory[0], expected[0])
    assert left_over == [24]


def test_a_large_grid_runs_in_batches(monkeypatch, left_over):
    monkeypatch.setattr(batches, "LANES", 1024)
    expected = _memory(_softmax, monkeypatch, together=False)
    memory = _memory(_softmax, monkeypatch, together=True)
    assert torch.equal(memory[1], expected[1])
    assert left_over[-1] <= 4  # the last batch is smaller than is worth it
