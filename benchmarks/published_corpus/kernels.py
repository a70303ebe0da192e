"""Our own kernels for the operations whose times others published, with the tile as arguments."""

import triton
import triton.language as tl


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, a_m, a_k, b_k, b_n, c_m, c_n,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    m = (first + (pid % (GROUP * columns)) % height) * TILE_M + tl.arange(0, TILE_M)
    n = (pid % (GROUP * columns)) // height * TILE_N + tl.arange(0, TILE_N)
    k = tl.arange(0, TILE_K)
    a = a_ptr + (m % M)[:, None] * a_m + k[None, :] * a_k
    b = b_ptr + k[:, None] * b_k + (n % N)[None, :] * b_n
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, TILE_K)):
        left = tl.load(a, mask=k[None, :] < K - step * TILE_K, other=0.0)
        right = tl.load(b, mask=k[:, None] < K - step * TILE_K, other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
        a += TILE_K * a_k
        b += TILE_K * b_k
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c_ptr + c_m * m[:, None] + c_n * n[None, :], total.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def attention(
    Q, K, V, Out, scale, stride_bh, stride_n,
    LENGTH: tl.constexpr, HEAD: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * stride_bh
    rows = tile * TILE_M + tl.arange(0, TILE_M)
    columns = tl.arange(0, TILE_N)
    depth = tl.arange(0, HEAD)
    q = tl.load(Q + base + rows[:, None] * stride_n + depth[None, :])
    k_ptr = K + base + depth[:, None] + columns[None, :] * stride_n
    v_ptr = V + base + columns[:, None] * stride_n + depth[None, :]
    largest = tl.full([TILE_M], -float("inf"), tl.float32)
    weight = tl.zeros([TILE_M], tl.float32)
    total = tl.zeros([TILE_M, HEAD], tl.float32)
    whole = LENGTH
    if CAUSAL:
        whole = tile * TILE_M
    for start in range(0, whole, TILE_N):
        scores = tl.dot(q, tl.load(k_ptr))
        now = tl.maximum(largest, tl.max(scores, 1) * scale)
        p = tl.math.exp2(scores * scale - now[:, None])
        correction = tl.math.exp2(largest - now)
        weight = weight * correction + tl.sum(p, 1)
        total = total * correction[:, None]
        total = tl.dot(p.to(Q.dtype.element_ty), tl.load(v_ptr), total)
        largest = now
        k_ptr += TILE_N * stride_n
        v_ptr += TILE_N * stride_n
    if CAUSAL:
        for start in range(tile * TILE_M, (tile + 1) * TILE_M, TILE_N):
            scores = tl.dot(q, tl.load(k_ptr)) * scale
            scores += tl.where(rows[:, None] >= start + columns[None, :], 0.0, -1e6)
            now = tl.maximum(largest, tl.max(scores, 1))
            p = tl.math.exp2(scores - now[:, None])
            correction = tl.math.exp2(largest - now)
            weight = weight * correction + tl.sum(p, 1)
            total = total * correction[:, None]
            total = tl.dot(p.to(Q.dtype.element_ty), tl.load(v_ptr), total)
            largest = now
            k_ptr += TILE_N * stride_n
            v_ptr += TILE_N * stride_n
    total = total / weight[:, None]
    tl.store(Out + base + rows[:, None] * stride_n + depth[None, :], total.to(Out.dtype.element_ty))


@triton.jit
def layer_norm(X, Y, W, B, Mean, Rstd, stride, N, eps, TILE: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([TILE], tl.float32)
    for start in range(0, N, TILE):
        columns = start + tl.arange(0, TILE)
        total += tl.load(X + row * stride + columns, mask=columns < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / N
    squares = tl.zeros([TILE], tl.float32)
    for start in range(0, N, TILE):
        columns = start + tl.arange(0, TILE)
        x = tl.load(X + row * stride + columns, mask=columns < N, other=0.0).to(tl.float32)
        centred = tl.where(columns < N, x - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, 0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for start in range(0, N, TILE):
        columns = start + tl.arange(0, TILE)
        inside = columns < N
        x = tl.load(X + row * stride + columns, mask=inside, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * tl.load(W + columns, mask=inside) + tl.load(B + columns, mask=inside)
        tl.store(Y + row * stride + columns, y, mask=inside)


def run_product(zeros, shape, tile):
    m, n, k = shape["m"], shape["n"], shape["k"]
    a = (
        zeros(k, m, dtype=shape["dtype"]).t()
        if shape.get("a") == "columns"
        else zeros(m, k, dtype=shape["dtype"])
    )
    b = (
        zeros(n, k, dtype=shape["dtype"]).t()
        if shape.get("b") == "columns"
        else zeros(k, n, dtype=shape["dtype"])
    )
    c = zeros(m, n, dtype=shape["dtype"])
    tile_m, tile_n, tile_k, stages, warps = tile
    grid = (triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)
    product[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), tile_m, tile_n, tile_k, 8,
        shape.get("precision", "tf32"), num_stages=stages, num_warps=warps,
    )  # fmt: skip


def run_attention(zeros, shape, tile):
    both, length, head = shape["batch"] * shape["heads"], shape["length"], shape["head"]
    q, k, v, out = (zeros(both, length, head, dtype=shape["dtype"]) for _ in range(4))
    tile_m, tile_n, stages, warps = tile
    attention[(length // tile_m, both)](
        q, k, v, out, 0.18, q.stride(0), q.stride(1), length, head, tile_m, tile_n, shape["causal"],
        num_stages=stages, num_warps=warps,
    )  # fmt: skip


def run_layer_norm(zeros, shape, tile):
    rows, columns = shape["rows"], shape["columns"]
    x, y = (zeros(rows, columns, dtype=shape["dtype"]) for _ in range(2))
    w, b = (zeros(columns, dtype=shape["dtype"]) for _ in range(2))
    mean, rstd = (zeros(rows, dtype="float32") for _ in range(2))
    block, warps = tile
    layer_norm[(rows,)](x, y, w, b, mean, rstd, x.stride(0), columns, 1e-5, block, num_warps=warps)


RUN = {"product": run_product, "attention": run_attention, "layer norm": run_layer_norm}
