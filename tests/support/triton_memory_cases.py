# ruff: noqa: E501 (kernels as they are written)
"""Cases of the rules for memory-bound Triton kernels: what each makes of a kernel and its launch, and what it leaves."""

from __future__ import annotations

from support.triton_rule_cases import Case
from support.triton_rule_kernels import ADD

TWICE = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x, mask=mask)
    again = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, again * 2, mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
"""

LITERALS = """
@triton.jit
def kernel(x_ptr, out_ptr, n):
    offs = tl.program_id(0) * 32 + tl.arange(0, 32)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * 2, mask=offs < n)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[((n + 31) // 32,)](x, out, n)
    return out
"""

WALKED = """
@triton.jit
def kernel(x_ptr, out_ptr, n, width, R: tl.constexpr, C: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    for start in range(0, width, C):
        for k in range(C):
            col = start + k
            inside = (rows < n) & (col < width)
            x = tl.load(x_ptr + rows * width + col, mask=inside)
            tl.store(out_ptr + rows * width + col, x * 2, mask=inside)


def run(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.shape[0], 128),)](x, out, x.shape[0], x.shape[1], R=128, C=16)
    return out
"""

ATOMIC = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.atomic_add(out_ptr + offs * 0, x, mask=mask)


def run(x):
    out = torch.zeros(1, dtype=x.dtype, device=x.device)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
"""

LOOPED_ATOMIC = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
        tl.atomic_add(out_ptr + row, tl.sum(x, axis=0))


def run(x):
    rows, n = x.shape
    out = torch.zeros(rows, dtype=x.dtype, device=x.device)
    kernel[(rows,)](x, out, n, BLOCK=64)
    return out
"""

DOUBLE = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float64)
    tl.store(out_ptr + offs, x * x, mask=offs < n)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
"""

ROWS = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0).to(tl.float32)
        total += x * x
    scale = tl.rsqrt(tl.sum(total, axis=0) / n)
    for i in range(tl.cdiv(n, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        mask = cols < n
        y = tl.load(x_ptr + n * row + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n + cols, y * scale, mask=mask)


def run(x):
    rows, n = x.shape
    out = torch.empty_like(x)
    kernel[(rows,)](x, out, n, BLOCK=64)
    return out
"""

LOOPS = ROWS.partition("    total = ")[1] + ROWS.partition("    total = ")[2].partition("\n\n\n")[0] + "\n"

STRAIGHT = """    if ONE_BLOCK:
        cols = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0).to(tl.float32)
        total = x * x
        scale = tl.rsqrt(tl.sum(total, axis=0) / n)
        mask = cols < n
        tl.store(out_ptr + row * n + cols, x * scale, mask=mask)
    else:
"""

INLINE_ROWS = ROWS.replace("x = tl.load(", "total += tl.abs(tl.load(").replace(
    "other=0.0).to(tl.float32)\n        total += x * x", "other=0.0))"
)

INLINE_LOOPS = (
    INLINE_ROWS.partition("    total = ")[1]
    + INLINE_ROWS.partition("    total = ")[2].partition("\n\n\n")[0]
    + "\n"
)

INLINE_STRAIGHT = """    if ONE_BLOCK:
        cols = tl.arange(0, BLOCK)
        x_row = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
        total = tl.abs(x_row).to(tl.float32)
        scale = tl.rsqrt(tl.sum(total, axis=0) / n)
        mask = cols < n
        y = x_row.to(tl.float32)
        tl.store(out_ptr + row * n + cols, y * scale, mask=mask)
    else:
"""

SOFTMAX_ROWS = """
@triton.jit
def kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + cols, e / tl.sum(e, axis=0), mask=cols < n)


def run(x):
    rows, n = x.shape
    out = torch.empty_like(x)
    kernel[(rows,)](x, out, x.stride(0), n, BLOCK=256)
    return out
"""

COLUMN_SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    col = tl.program_id(0)
    largest = -float("inf")
    for start in range(0, M, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + rows * N + col, mask=rows < M, other=-float("inf"))
        largest = tl.maximum(largest, tl.max(x, axis=0))
    tl.store(out_ptr + col, largest)


def run(x):
    M, N = x.shape
    out = torch.empty(N, dtype=x.dtype, device=x.device)
    kernel[(N,)](x, out, M, N, BLOCK=16)
    return out
"""

LANES_APART = """
@triton.jit
def kernel(x_ptr, out_ptr, n, programs, BLOCK: tl.constexpr):
    offs = tl.program_id(0) + tl.arange(0, BLOCK) * programs
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x + 1, mask=offs < n)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    programs = triton.cdiv(n, 256)
    kernel[(programs,)](x, out, n, programs, BLOCK=256)
    return out
"""

SEVERAL_ROWS = {
    "BLOCK: tl.constexpr)": "BLOCK: tl.constexpr, n_rows, ROWS: tl.constexpr)",
    "tl.program_id(0)": "(tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]",
    "tl.arange(0, BLOCK)": "tl.arange(0, BLOCK)[None, :]",
    'mask=cols < n, other=-float("inf")': 'mask=(row < n_rows) & (cols < n), other=-float("inf")',
    "tl.max(x, axis=0)": "tl.max(x, axis=1, keep_dims=True)",
    "tl.sum(e, axis=0), mask=cols < n": "tl.sum(e, axis=1, keep_dims=True), mask=(row < n_rows) & (cols < n)",
    "(rows,)": "(triton.cdiv(rows, 16),)",
    "BLOCK=256": "BLOCK=256, n_rows=rows, ROWS=16",
}

#: Two programs go through 32 rows each, four at a time.
LONG_PARTS = """

@triton.jit
def scale_rows_kernel(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    cols = tl.arange(0, BLOCK)
    for start in range(0, ROWS, STEP):
        rows = first + start + tl.arange(0, STEP)
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask)
        tl.store(out_ptr + rows[:, None] * N + cols[None, :], x * 2, mask=mask)


def run(x):
    M, N = x.shape
    out = torch.empty_like(x)
    rows = 32
    scale_rows_kernel[(triton.cdiv(M, rows),)](x, out, M, N, ROWS=rows, STEP=4, BLOCK=triton.next_power_of_2(N))
    return out
"""

BLOCK_AT_LAUNCH = (
    '@triton.heuristics({"BLOCK": lambda args: min(4096, triton.next_power_of_2(args["n"]))})\n@triton.jit'
)

MEMORY_CASES = [
    Case("triton-contiguous-lanes", "knows the number of programs by the launch", LANES_APART, {"tl.program_id(0) + tl.arange(0, BLOCK) * programs": "tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"}),
    Case(
        "triton-program-tile",
        "takes several rows",
        SOFTMAX_ROWS,
        SEVERAL_ROWS,
    ),
    Case(
        "triton-program-tile",
        "takes several rows where the number of warps is tuned",
        SOFTMAX_ROWS.replace("@triton.jit", "@triton.autotune(configs=[triton.Config({}, num_warps=4)], key=[])\n@triton.jit"),
        SEVERAL_ROWS,
    ),
    Case(
        "triton-program-tile",
        "takes several columns, and a loop goes on from a column of numbers",
        COLUMN_SUM,
        {
            "BLOCK: tl.constexpr)": "BLOCK: tl.constexpr, COLS: tl.constexpr)",
            "tl.program_id(0)": "(tl.program_id(0) * COLS + tl.arange(0, COLS))[:, None]",
            'largest = -float("inf")': 'largest = tl.full([COLS, 1], -float("inf"), tl.float32)',
            "start + tl.arange(0, BLOCK)": "start + tl.arange(0, BLOCK)[None, :]",
            "mask=rows < M": "mask=(col < N) & (rows < M)",
            "tl.max(x, axis=0)": "tl.max(x, axis=1, keep_dims=True)",
            "out_ptr + col, largest": "out_ptr + col, largest, mask=col < N",
            "(N,)": "(triton.cdiv(N, 16),)",
            "BLOCK=16)": "BLOCK=16, COLS=16)",
        },
    ),
    Case(
        "triton-program-tile",
        "takes fewer rows where the launch computes a longer one",
        SOFTMAX_ROWS.replace("BLOCK=256", "BLOCK=triton.next_power_of_2(n)"),
        {old: new for old, new in SEVERAL_ROWS.items() if old not in ("(rows,)", "BLOCK=256")}
        | {
            "    kernel[(rows,)": "    rows_per_program = triton.cdiv(1024, triton.next_power_of_2(n))\n    kernel[(triton.cdiv(rows, rows_per_program),)",
            "BLOCK=triton.next_power_of_2(n))\n    return": "BLOCK=triton.next_power_of_2(n), n_rows=rows, ROWS=rows_per_program)\n    return",
        },
    ),
    Case(
        "triton-program-tile",
        "takes a grid that is a function",
        SOFTMAX_ROWS.replace("(rows,)", "lambda meta: (rows,)"),
        {old: new for old, new in SEVERAL_ROWS.items() if old != "(rows,)"} | {"meta: (rows,)": "meta: (triton.cdiv(rows, 16),)"},
    ),
    Case(
        "triton-program-tile",
        "takes a return at the end, and a choice that does not depend on the row",
        SOFTMAX_ROWS.replace("mask=cols < n)\n\n", "mask=cols < n)\n    return\n\n").replace("    e = tl.exp(x", "    x = x * 2 if BLOCK > 512 else x\n    e = tl.exp(x"),
        SEVERAL_ROWS,
    ),
    Case("triton-program-tile", "leaves a return before the end", SOFTMAX_ROWS.replace("    e = ", "    if n == 3:\n        return\n    e = "), None),
    Case("triton-program-tile", "leaves a choice by the row", SOFTMAX_ROWS.replace("    e = ", "    x = x * 2 if row == 3 else x\n    e = "), None),
    Case("triton-program-tile", "leaves a branch on the row", SOFTMAX_ROWS.replace("    e = ", "    if row == 3:\n        x = x * 2\n    e = "), None),
    Case("triton-program-tile", "leaves blocks that a launch rounds up", LANES_APART, None),
    Case("triton-program-tile", "leaves blocks of one range", LITERALS.replace("((n + 31) // 32,)", "(x.shape[0] * 4,)"), None),
    Case("triton-program-tile", "leaves one place for all rows", SOFTMAX_ROWS.replace("out_ptr + row * stride", "out_ptr"), None),
    Case("triton-program-tile", "leaves lanes in an order of their own", SOFTMAX_ROWS.replace("tl.exp(x - tl.max(x, axis=0))", "tl.cumsum(x, axis=0)"), None),

    Case("triton-shorter-chunk", "gives each program a quarter of the rows", LONG_PARTS, {"rows = 32": "rows = 8"}),
    Case("triton-shorter-chunk", "counts blocks by a number", LONG_PARTS.replace("    rows = 32\n", "").replace("rows,)]", "32,)]").replace("cdiv(M, rows)", "cdiv(M, 32)").replace("ROWS=rows", "ROWS=32"), {"cdiv(M, 32)": "cdiv(M, 8)", "ROWS=32": "ROWS=8"}),
    Case("triton-shorter-chunk", "goes no further than the loop's step", LONG_PARTS.replace("STEP=4", "STEP=16"), None),
    Case("triton-shorter-chunk", "leaves rows that all programs go through", LONG_PARTS.replace("first = tl.program_id(0) * ROWS", "first = tl.program_id(0)"), None),
    Case("triton-shorter-chunk", "leaves the size of a tile", LONG_PARTS.replace("tl.arange(0, STEP)", "tl.arange(0, ROWS)").replace("start + ", "0 * start + ").replace("STEP)", "ROWS)"), None),

    Case(
        "triton-repeated-access",
        "reads a value that a variable holds, and stores once",
        TWICE,
        {
            "    tl.store(out_ptr + offs, x, mask=mask)\n    again = tl.load(x_ptr + offs, mask=mask)\n": "",
            "again * 2": "x * 2",
        },
    ),
    Case(
        "triton-repeated-access",
        "takes what was stored from the register",
        TWICE.replace("tl.load(x_ptr + offs, mask=mask)\n    tl.store(out_ptr + offs, again", "tl.load(offs + out_ptr, mask=mask)\n    tl.store(out_ptr + offs, again"),
        {
            "    tl.store(out_ptr + offs, x, mask=mask)\n": "",
            "tl.load(offs + out_ptr, mask=mask)": "x.to(out_ptr.dtype.element_ty)",
        },
    ),
    Case(
        "triton-repeated-access",
        "gives an expression that was stored a variable",
        TWICE.replace("tl.store(out_ptr + offs, x, mask", "tl.store(out_ptr + offs, x + 1, mask").replace("tl.load(x_ptr + offs, mask=mask)\n    tl.store(out_ptr + offs, again", "tl.load(out_ptr + offs, mask=mask)\n    tl.store(out_ptr + offs, again"),
        {
            "tl.store(out_ptr + offs, x + 1, mask=mask)": "stored = x + 1",
            "tl.load(out_ptr + offs, mask=mask)": "stored.to(out_ptr.dtype.element_ty)",
        },
    ),
    Case(
        "triton-repeated-access",
        "leaves tensors that may overlap",
        TWICE.replace("torch.empty_like(x)", "x.view(-1)"),
        None,
    ),
    Case("triton-repeated-access", "leaves another mask", TWICE.replace("again = tl.load(x_ptr + offs, mask=mask)", "again = tl.load(x_ptr + offs, mask=offs < n - 1)").replace("tl.store(out_ptr + offs, x, mask=mask)", "tl.store(out_ptr + offs + n, x, mask=mask)"), None),
    Case(
        "triton-loop-lanes",
        "takes the columns of a row together",
        WALKED,
        {
            "tl.arange(0, R)": "tl.arange(0, R)[:, None]",
            "for k in range(C):": "k = tl.arange(0, C)[None, :]",
            "            col = start": "        col = start",
            "            inside": "        inside",
            "            x =": "        x =",
            "            tl.store": "        tl.store",
        },
    ),
    Case("triton-loop-lanes", "needs a bound by the width: else rows may meet", WALKED.replace("col < width)", "col < 100)"), None),
    Case("triton-loop-lanes", "leaves a sum over the turns", WALKED.replace("x = tl.load(", "x = x + tl.load(").replace("    for start", "    x = 0.0\n    for start"), None),
    Case("triton-loop-lanes", "leaves a tensor that is read elsewhere", WALKED.replace("out = torch.empty_like(x)", "out = x").replace("tl.load(x_ptr + rows * width + col", "tl.load(x_ptr + rows * width + col + 1"), None),
    Case("triton-loop-lanes", "leaves lanes that lie side by side", WALKED.replace("rows * width + col", "rows + width * col"), None),
    Case("triton-loop-lanes", "needs a power of two", WALKED.replace("C=16", "C=12"), None),
    Case("triton-larger-block", "changes the grid with it", ADD.replace("256", "32"), {"cdiv(n, 32)": "cdiv(n, 1024)", "BLOCK=32": "BLOCK=1024"}),
    Case(
        "triton-larger-block",
        "changes a constant of the module",
        ("BLOCK = 32\n" + ADD).replace("BLOCK=256", "BLOCK=BLOCK").replace("(triton.cdiv(n, 256),)", 'lambda meta: (triton.cdiv(n, meta["BLOCK"]),)'),
        {"BLOCK = 32": "BLOCK = 1024"},
    ),
    Case("triton-larger-block", "changes numbers in the kernel", LITERALS, {"* 32 + tl.arange(0, 32)": "* 1024 + tl.arange(0, 1024)", "(n + 31) // 32": "(n + 1023) // 1024"}),
    Case("triton-larger-block", "leaves accesses without a mask", LITERALS.replace("tl.load(x_ptr + offs, mask=offs < n)", "tl.load(x_ptr + offs)"), None),
    Case("triton-larger-block", "leaves a result per program", LITERALS.replace("out_ptr + offs, x", "out_ptr + tl.program_id(0), x"), None),
    Case("triton-single-atomic", "adds the lanes first", ATOMIC, {"out_ptr + offs * 0, x, mask=mask": "out_ptr, tl.sum(tl.where(mask, x, 0.0), axis=0)"}),
    Case(
        "triton-single-atomic",
        "adds a loop's blocks first",
        LOOPED_ATOMIC,
        {
            "    for start": "    total = 0.0\n    for start",
            "        tl.atomic_add(out_ptr + row, tl.sum(x, axis=0))": "        total += tl.sum(x, axis=0)\n    tl.atomic_add(out_ptr + row, total)",
        },
    ),
    Case("triton-single-atomic", "leaves an address per lane", ATOMIC.replace("offs * 0", "offs % 2"), None),
    Case("triton-single-atomic", "leaves a result that is read", ATOMIC.replace("    tl.atomic_add(", "    x = tl.atomic_add("), None),
    Case("triton-single-precision", "converts to float32", DOUBLE, {"tl.float64": "tl.float32"}),
    Case("triton-single-precision", "leaves a launch that knows float64", DOUBLE.replace("n = x.numel()", "n = x.double().numel()"), None),
    Case(
        "triton-one-block",
        "keeps a row in registers",
        ROWS,
        {
            "@triton.jit": '@triton.heuristics({"ONE_BLOCK": lambda args: args["n"] <= args["BLOCK"]})\n@triton.jit',
            "BLOCK: tl.constexpr)": "BLOCK: tl.constexpr, ONE_BLOCK: tl.constexpr)",
            LOOPS: STRAIGHT + "".join(f"    {line}\n" for line in LOOPS.splitlines()),
            "BLOCK=64": "BLOCK=min(triton.next_power_of_2(n), 8192)",
        },
    ),
    Case(
        "triton-one-block",
        "gives a load inside of an expression a variable",
        INLINE_ROWS,
        {
            "@triton.jit": '@triton.heuristics({"ONE_BLOCK": lambda args: args["n"] <= args["BLOCK"]})\n@triton.jit',
            "BLOCK: tl.constexpr)": "BLOCK: tl.constexpr, ONE_BLOCK: tl.constexpr)",
            INLINE_LOOPS: INLINE_STRAIGHT + "".join(f"    {line}\n" for line in INLINE_LOOPS.splitlines()),
            "BLOCK=64": "BLOCK=min(triton.next_power_of_2(n), 8192)",
        },
    ),
    Case(
        "triton-one-block",
        "keeps a row whose block is computed at the launch",
        ROWS.replace("@triton.jit", BLOCK_AT_LAUNCH).replace(", BLOCK=64", ""),
        {
            "(4096, triton.next_power_of_2(args[\"n\"]))}": "(4096, triton.next_power_of_2(args[\"n\"])), \"ONE_BLOCK\": lambda args: args[\"n\"] <= args[\"BLOCK\"]}",
            "BLOCK: tl.constexpr)": "BLOCK: tl.constexpr, ONE_BLOCK: tl.constexpr)",
            LOOPS: STRAIGHT + "".join(f"    {line}\n" for line in LOOPS.splitlines()),
        },
    ),
    Case("triton-one-block", "leaves lanes that a sum would notice", ROWS.replace("total += x * x", "total += x + 1.0"), None),
    Case("triton-one-block", "leaves another row", ROWS.replace("n * row + cols", "n * row + cols + 1"), None),
    Case("triton-one-block", "leaves a loop of another length", ROWS.replace("tl.cdiv(n, BLOCK)", "tl.cdiv(n - 1, BLOCK)"), None),
]  # fmt: skip
