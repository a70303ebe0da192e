# ruff: noqa: E501 (kernels as they are written)
"""Cases of the Triton rules for matrix products and attention."""

from __future__ import annotations

from support.triton_rule_cases import Case
from support.triton_rule_kernels import MATMUL

PRODUCT = """

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0)
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :], mask=(inner[:, None] < K) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


def run(x):
    a, b = x[:64, :48].contiguous(), x[:48, :40].contiguous()
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty(M, N)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](a, b, c, M, N, K, BM=32, BN=32, BK=32)
    return c
"""

NUMBERED = """

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n):
    rows = tl.program_id(0) * 32 + tl.arange(0, 32)
    columns = tl.program_id(1) * 32 + tl.arange(0, 32)
    acc = tl.zeros((32, 32), dtype=tl.float32)
    for k in range(0, n, 32):
        inner = k + tl.arange(0, 32)
        a = tl.load(a_ptr + rows[:, None] * n + inner[None, :])
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc)


def run(x):
    a = x[:64, :64].contiguous()
    n = a.shape[0]
    c = torch.empty_like(a)
    kernel[(n // 32, n // 32)](a, a, c, n)
    return c
"""

_LAMBDA = PRODUCT.replace("tl.program_id(0) * BM", "tl.program_id(0) // tl.cdiv(N, BN) * BM").replace(
    "tl.program_id(1) * BN", "tl.program_id(0) % tl.cdiv(N, BN) * BN"
)

ATTENTION = """

@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, n, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    start = tl.program_id(0)
    rows = start * BLOCK_M + tl.arange(0, BLOCK_M)
    head = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + head[None, :], mask=rows[:, None] < n, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for first in range(0, n, BLOCK_N):
        columns = first + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + columns[None, :] * D + head[:, None], mask=columns[None, :] < n, other=0.0)
        scores = tl.dot(q, k) * scale
        scores = tl.where(rows[:, None] >= columns[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + columns[:, None] * D + head[None, :], mask=columns[:, None] < n, other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p, v)
        largest = new
    tl.store(out_ptr + rows[:, None] * D + head[None, :], acc / total[:, None], mask=rows[:, None] < n)


def run(x):
    q = x[:, :16].contiguous()
    out = torch.empty_like(q)
    n = q.shape[0]
    BLOCK = 16
    kernel[(triton.cdiv(n, BLOCK),)](q, q, q, out, n, 0.25, BLOCK_M=BLOCK, BLOCK_N=BLOCK, D=16, num_stages=1)
    return out
"""

_STEPPED = (
    PRODUCT.replace("for k in range(0, K, BK):", "for k in range(0, tl.cdiv(K, BK)):")
    .replace("        inner = k + tl.arange(0, BK)\n", "")
    .replace("    acc = tl.zeros", "    inner = tl.arange(0, BK)\n    acc = tl.zeros")
    .replace("        acc = tl.dot(a, b, acc)\n", "        acc += tl.dot(a, b)\n        inner += BK\n")
    .replace("    tl.store(", "    c = acc.to(tl.float32)\n    tl.store(")
    .replace("columns[None, :], acc,", "columns[None, :], c,")
    .replace("torch.empty(M, N)", "torch.empty(M, N, dtype=x.dtype)")
)

_CAST = PRODUCT.replace("other=0.0)", "other=0.0).to(tl.float32)")

_TUNED = PRODUCT.replace(
    "\n\n@triton.jit",
    """

def configs():
    return [triton.Config({"BM": m, "BN": n, "BK": 32}, num_warps=4) for m in (32, 64) for n in [32, 64]]


@triton.autotune(configs=configs(), key=["M", "N", "K"])
@triton.jit""",
).replace(", BM=32, BN=32, BK=32", "")

PRODUCT_CASES = [
    Case(
        "triton-split-k",
        "gives the parts an axis of their own and adds them up in float32",
        PRODUCT,
        {
            "BK: tl.constexpr):": "BK: tl.constexpr, SPLIT_K: tl.constexpr):",
            "    for k in range(0, K, BK):": "    split = tl.program_id(2)\n    for k in range(split * BK, K, BK * SPLIT_K):",
            "tl.store(": "tl.atomic_add(",
            "torch.empty(M, N)": "torch.zeros(M, N)",
            "triton.cdiv(N, 32))": "triton.cdiv(N, 32), 4)",
            "BK=32)": "BK=32, SPLIT_K=4)",
        },
    ),
    Case(
        "triton-split-k",
        "steps pointers and converts the sum",
        _STEPPED,
        {
            "BK: tl.constexpr):": "BK: tl.constexpr, SPLIT_K: tl.constexpr):",
            "    for k in range(0, tl.cdiv(K, BK)):": "    split = tl.program_id(2)\n    inner += split * BK\n    for k in range(split, tl.cdiv(K, BK), SPLIT_K):",
            "inner += BK\n": "inner += BK * SPLIT_K\n",
            "    c = acc.to(tl.float32)\n": "",
            "tl.store(": "tl.atomic_add(",
            "columns[None, :], c,": "columns[None, :], acc,",
            "torch.empty(M, N, dtype=x.dtype)": "torch.zeros(M, N, dtype=torch.float32)",
            "triton.cdiv(N, 32))": "triton.cdiv(N, 32), 4)",
            "BK=32)": "BK=32, SPLIT_K=4)\n    c = c.to(x.dtype)",
        },
    ),
    Case(
        "triton-split-k",
        "leaves an accumulator that more happens to",
        PRODUCT.replace("columns[None, :], acc,", "columns[None, :], tl.maximum(acc, 0.0),"),
        None,
    ),
    Case(
        "triton-causal-bound",
        "ends the loop at the block's last row",
        ATTENTION,
        {"range(0, n, BLOCK_N)": "range(0, tl.minimum(n, (start + 1) * BLOCK_M), BLOCK_N)"},
    ),
    Case(
        "triton-causal-bound",
        "keeps the whole range where a flag takes the mask away",
        ATTENTION.replace("D: tl.constexpr):", "D: tl.constexpr, CAUSAL: tl.constexpr = True):").replace(
            "        scores = tl.where(", "        if CAUSAL:\n            scores = tl.where("
        ),
        {
            "    for first in range(0, n, BLOCK_N)": "    last_key = n\n    if CAUSAL:\n        last_key = tl.minimum(last_key, (start + 1) * BLOCK_M)\n    for first in range(0, last_key, BLOCK_N)"
        },
    ),
    Case(
        "triton-causal-bound",
        "leaves a mask of a band",
        ATTENTION.replace("rows[:, None] >= columns[None, :]", "rows[:, None] + 8 >= columns[None, :]"),
        None,
    ),
    Case(
        "triton-causal-bound",
        "leaves scores that are masked to zero",
        ATTENTION.replace('scores, -float("inf"))', "scores, 0.0)"),
        None,
    ),
    Case(
        "triton-causal-bound",
        "leaves a loop that ends at the diagonal",
        ATTENTION.replace("range(0, n, BLOCK_N)", "range(0, (start + 1) * BLOCK_M, BLOCK_N)"),
        None,
    ),
    Case(
        "triton-dot-operands",
        "takes the casts of both operands away",
        _CAST,
        {
            "(inner[None, :] < K), other=0.0).to(tl.float32)": "(inner[None, :] < K), other=0.0)",
            "(columns[None, :] < N), other=0.0).to(tl.float32)": "(columns[None, :] < N), other=0.0)",
        },
    ),
    Case(
        "triton-dot-operands",
        "leaves an operand that is used otherwise too",
        _CAST.replace("acc = tl.dot(a, b, acc)", "acc = tl.dot(a, b, acc) + tl.sum(a, 1)[:, None]"),
        None,
    ),
    Case(
        "triton-dot-operands",
        "leaves a product whose other operand is computed",
        _CAST.replace("tl.dot(a, b, acc)", "tl.dot(a, b * 2, acc)"),
        None,
    ),
    Case(
        "triton-more-configs",
        "adds tiles beside a comprehension in a function",
        _TUNED,
        {
            "configs=configs()": 'configs=configs() + [triton.Config({"BM": 128, "BN": 256, "BK": 64}, num_warps=8, num_stages=4), triton.Config({"BM": 256, "BN": 128, "BK": 64}, num_warps=8, num_stages=4)]'
        },
        runs=False,
    ),
    Case(
        "triton-more-configs",
        "leaves a list that it cannot read",
        _TUNED.replace("configs=configs()", "configs=other.configs()"),
        None,
    ),
    Case(
        "triton-more-configs",
        "stays within the sizes that are tried where nothing is masked",
        _TUNED.replace(
            "mask=(rows[:, None] < M) & (inner[None, :] < K), ", "mask=inner[None, :] < K, "
        ).replace("mask=(inner[:, None] < K) & (columns[None, :] < N), ", "mask=inner[:, None] < K, "),
        {
            "configs=configs()": 'configs=configs() + [triton.Config({"BM": 64, "BN": 64, "BK": 64}, num_warps=4, num_stages=4)]'
        },
        runs=False,
    ),
    Case(
        "triton-attention-tiles",
        "changes what stands for both sizes",
        ATTENTION,
        {
            "BLOCK = 16": "BLOCK = 128",
            "BLOCK_N=BLOCK, D=16, num_stages=1": "BLOCK_N=64, D=16, num_stages=3",
        },
    ),
    Case(
        "triton-attention-tiles",
        "leaves a single product",
        PRODUCT,
        None,
    ),
    Case(
        "triton-matmul-tiles",
        "follows each number of the grid by its axis",
        PRODUCT,
        {
            "cdiv(M, 32), triton.cdiv(N, 32)": "cdiv(M, 128), triton.cdiv(N, 256)",
            "BM=32, BN=32, BK=32": "BM=128, BN=256, BK=64, num_warps=8, num_stages=4",
        },
    ),
    Case(
        "triton-matmul-tiles",
        "tells the factors of one axis apart by what they divide",
        _LAMBDA.replace(
            "(triton.cdiv(M, 32), triton.cdiv(N, 32))", "(triton.cdiv(N, 32) * ((M + 31) // 32),)"
        ),
        {
            "cdiv(N, 32) * ((M + 31) // 32)": "cdiv(N, 256) * ((M + 127) // 128)",
            "BM=32, BN=32, BK=32": "BM=128, BN=256, BK=64, num_warps=8, num_stages=4",
        },
    ),
    Case(
        "triton-matmul-tiles",
        "leaves a grid over the meta-parameters as it is",
        _LAMBDA.replace(
            "(triton.cdiv(M, 32), triton.cdiv(N, 32))",
            'lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)',
        ),
        {"BM=32, BN=32, BK=32": "BM=128, BN=256, BK=64, num_warps=8, num_stages=4"},
    ),
    Case(
        "triton-matmul-tiles",
        "gives the inner dimension a size of its own",
        PRODUCT.replace("BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr", "BLOCK: tl.constexpr")
        .replace("BM=32, BN=32, BK=32", "BLOCK")
        .replace("BM", "BLOCK")
        .replace("BN", "BLOCK")
        .replace("BK", "BLOCK")
        .replace("    M, K =", "    BLOCK = 32\n    M, K =")
        .replace("cdiv(M, 32), triton.cdiv(N, 32)", "cdiv(M, BLOCK), triton.cdiv(N, BLOCK)"),
        {
            "BLOCK: tl.constexpr": "BLOCK: tl.constexpr, BLOCK_K: tl.constexpr",
            "range(0, K, BLOCK)": "range(0, K, BLOCK_K)",
            "k + tl.arange(0, BLOCK)": "k + tl.arange(0, BLOCK_K)",
            "BLOCK = 32": "BLOCK = 128",
            "K, BLOCK)\n    return": "K, BLOCK, BLOCK_K=64, num_warps=8, num_stages=4)\n    return",
        },
    ),
    Case(
        "triton-matmul-tiles",
        "keeps sizes that the tile does not divide where nothing is masked",
        NUMBERED,
        {
            "c_ptr, n):": "c_ptr, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):",
            "tl.program_id(0) * 32 + tl.arange(0, 32)": "tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)",
            "tl.program_id(1) * 32 + tl.arange(0, 32)": "tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)",
            "zeros((32, 32)": "zeros((BLOCK_M, BLOCK_N)",
            "range(0, n, 32)": "range(0, n, BLOCK_K)",
            "k + tl.arange(0, 32)": "k + tl.arange(0, BLOCK_K)",
            "    kernel[(n // 32, n // 32)](a, a, c, n)": """    block_m = 128 if n % 128 == 0 else 32
    block_n = 256 if n % 256 == 0 else 32
    block_k = 64 if n % 64 == 0 else 32
    kernel[(n // block_m, n // block_n)](a, a, c, n, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8, num_stages=4)""",
        },
    ),
    Case("triton-matmul-tiles", "leaves a grid that says nothing of the tile", MATMUL, None),
    Case(
        "triton-matmul-tiles",
        "leaves a computed size",
        PRODUCT.replace("BM=32", "BM=triton.next_power_of_2(M)"),
        None,
    ),
    Case(
        "triton-matmul-tiles",
        "leaves a number in the kernel that may be something else",
        NUMBERED.replace(
            "rows[:, None] * n + columns[None, :], acc)", "rows[:, None] * n + columns[None, :], acc % 32)"
        ),
        None,
    ),
]
