# ruff: noqa: E501 (kernels as they are written)
"""What each Triton rule does to a kernel and its launch, and that results stay the same (interpreted on the CPU)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from accelopt_agent.rules import catalogue
from accelopt_profiling.kernels import find_kernels

IMPORTS = """import torch
import triton
import triton.language as tl

other = 1  # ü
"""

ADD = """

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # one block
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + 1, mask=inside)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256, num_warps=4)
    return out
"""

MATMUL = """

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, N, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    n = tl.program_id(1)
    rows = m * BLOCK + tl.arange(0, BLOCK)
    columns = n * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * N + columns[None, :])
        acc += tl.dot(a, b)  # the product
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)


def run(x):
    a, b = x[:64, :64].contiguous(), x[:64, :64].T.contiguous()
    c = torch.empty_like(a)
    kernel[(2, 2)](a, b, c, 64, 64, BLOCK=32)
    return c
"""

SOFTMAX = """

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    largest = -float("inf")
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + offsets, mask=offsets < n, other=-float("inf"))
        largest = tl.maximum(largest, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + offsets, mask=offsets < n, other=-float("inf"))
        total += tl.sum(tl.exp(x - largest), axis=0)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + offsets, mask=offsets < n)
        tl.store(out_ptr + row + offsets, tl.exp(x - largest) / total, mask=offsets < n)


def run(x):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=32)
    return out
"""

SCALE = """

@triton.jit
def kernel(x_ptr, s_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + offsets, mask=offsets < n)
        y = tl.exp(x * scale)
        tl.store(out_ptr + row * n + offsets, y, mask=offsets < n)


def run(x):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, x, out, x.shape[1], 0.5, BLOCK=64)
    return out
"""

REDUCE = """

@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        first = row * 1
        w = tl.load(w_ptr + first)
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0)
        total += x * w
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def run(x):
    out = torch.empty(x.shape[0])
    kernel[(x.shape[0],)](x, x, out, x.shape[1], BLOCK=64)
    return out
"""

STRIDED = ADD.replace(
    "tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
    "tl.program_id(0) + tl.arange(0, BLOCK) * tl.num_programs(0)",
)

TUNED = (
    ADD.replace(
        "@triton.jit",
        '@triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=4)], key=["n"])\n@triton.jit',
    )
    .replace(", BLOCK=256, num_warps=4", "")
    .replace("(triton.cdiv(n, 256),)", 'lambda meta: (triton.cdiv(n, meta["BLOCK"]),)')
)


WRAPPED = (
    MATMUL.replace("a_ptr, b_ptr, c_ptr, K, N,", "a_ptr, b_ptr, c_ptr, K, M, N,")
    .replace(
        "rows = m * BLOCK + tl.arange(0, BLOCK)\n    columns = n * BLOCK + tl.arange(0, BLOCK)",
        "rows = (m * BLOCK + tl.arange(0, BLOCK)) % M\n    columns = (n * BLOCK + tl.arange(0, BLOCK)) % N",
    )
    .replace("64, 64, BLOCK", "64, 64, 64, BLOCK")
)


@dataclass(frozen=True)
class Case:
    """``changes`` are the replacements that make the rewritten file of ``text``; None where the rule must not apply.

    ``runs`` tells that the interpreter can run the result (it has no autotuner).
    """

    rule: str
    name: str
    text: str
    changes: dict[str, str] | None
    runs: bool = True


CASES = [
    Case("triton-num-warps", "doubles a number at the launch", ADD, {"num_warps=4": "num_warps=8"}),
    Case("triton-num-warps", "adds the option", MATMUL, {"BLOCK=32)": "BLOCK=32, num_warps=8)"}),
    Case(
        "triton-num-warps",
        "adds a config",
        TUNED,
        {"num_warps=4)": 'num_warps=4), triton.Config({"BLOCK": 256}, num_warps=8)'},
        runs=False,
    ),
    Case(
        "triton-num-warps",
        "leaves a number that it does not know",
        ADD.replace("num_warps=4", "num_warps=warps(n)"),
        None,
    ),
    Case("triton-num-stages", "adds a stage", MATMUL, {"BLOCK=32)": "BLOCK=32, num_stages=4)"}),
    Case("triton-num-stages", "needs a loop that loads", ADD, None),
    Case(
        "triton-tile-size",
        "changes the grid with it",
        ADD,
        {"BLOCK=256": "BLOCK=512", "cdiv(n, 256)": "cdiv(n, 512)"},
    ),
    Case(
        "triton-tile-size",
        "changes the variable behind it",
        ADD.replace("    n = x.numel()", "    n = x.numel()\n    block = 256")
        .replace("cdiv(n, 256)", "cdiv(n, block)")
        .replace("BLOCK=256", "BLOCK=block"),
        {"block = 256": "block = 512"},
    ),
    Case(
        "triton-tile-size",
        "leaves a computed size",
        ADD.replace("BLOCK=256", "BLOCK=triton.next_power_of_2(n)"),
        None,
    ),
    Case(
        "triton-autotune",
        "takes the number out of the launch",
        ADD,
        {
            "@triton.jit": """@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 256}, num_warps=4),
        triton.Config({"BLOCK": 512}, num_warps=4),
        triton.Config({"BLOCK": 512}, num_warps=8),
        triton.Config({"BLOCK": 1024}, num_warps=8),
        triton.Config({"BLOCK": 128}, num_warps=4),
    ],
    key=["n"],
)
@triton.jit""",
            "[(triton.cdiv(n, 256),)]": '[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)]',
            ", BLOCK=256, num_warps=4": "",
        },
        runs=False,
    ),
    Case(
        "triton-autotune",
        "does not run a kernel twice that adds to its output",
        ADD.replace("tl.store(", "tl.atomic_add("),
        None,
    ),
    Case("triton-autotune", "leaves an autotuned kernel", TUNED, None),
    Case(
        "triton-cache-hints",
        "streams what is read once",
        ADD,
        {"x_ptr + offsets, mask=inside)": 'x_ptr + offsets, mask=inside, eviction_policy="evict_first")'},
    ),
    Case(
        "triton-cache-hints",
        "leaves hints that are there",
        ADD.replace("mask=inside)\n    tl", 'mask=inside, eviction_policy="evict_last")\n    tl'),
        None,
    ),
    Case(
        "triton-contiguous-lanes",
        "takes blocks",
        STRIDED,
        {
            "tl.program_id(0) + tl.arange(0, BLOCK) * tl.num_programs(0)": "tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"
        },
    ),
    Case("triton-contiguous-lanes", "leaves blocks", ADD, None),
    Case(
        "triton-dot-accumulate",
        "adds inside the product",
        MATMUL,
        {"acc += tl.dot(a, b)": "acc = tl.dot(a, b, acc=acc)"},
    ),
    Case(
        "triton-dot-accumulate",
        "keeps a half-precision sum",
        MATMUL.replace("tl.float32", "tl.float16"),
        None,
    ),
    Case(
        "triton-hoist-load",
        "loads before the loop",
        REDUCE,
        {
            "        first = row * 1\n        w = tl.load(w_ptr + first)\n": "",
            "    for start": "    first = row * 1\n    w = tl.load(w_ptr + first)\n    for start",
        },
    ),
    Case(
        "triton-hoist-load",
        "does not move past a store",
        REDUCE.replace("total += x * w", "tl.store(out_ptr + row, start)\n        total += x * w"),
        None,
    ),
    Case(
        "triton-exp2",
        "folds the factor",
        SCALE,
        {"tl.exp(x * scale)": "tl.exp2(x * (scale * 1.4426950408889634))"},
    ),
    Case("triton-exp2", "needs a factor", SOFTMAX, None),
    Case(
        "triton-drop-mask",
        "compiles a version for whole blocks",
        ADD,
        {
            "@triton.jit": '@triton.heuristics({"EVEN_N": lambda args: args["n"] > 0 and args["n"] % args["BLOCK"] == 0})\n@triton.jit',
            "BLOCK: tl.constexpr": "BLOCK: tl.constexpr, EVEN_N: tl.constexpr",
            "inside = offsets < n": "inside = ((offsets < n) | EVEN_N)",
        },
    ),
    Case(
        "triton-drop-mask",
        "needs a grid without blocks past the end",
        ADD.replace("cdiv(n, 256)", "cdiv(n, 128)"),
        None,
    ),
    Case(
        "triton-contiguity-hint",
        "says so where blocks divide the size",
        WRAPPED,
        {
            "@triton.jit": """@triton.heuristics(
    {
        "EVEN_M": lambda args: args["M"] > 0 and args["M"] % args["BLOCK"] == 0,
        "EVEN_N": lambda args: args["N"] > 0 and args["N"] % args["BLOCK"] == 0,
    }
)
@triton.jit""",
            "BLOCK: tl.constexpr": "BLOCK: tl.constexpr, EVEN_M: tl.constexpr, EVEN_N: tl.constexpr",
            "% M\n": "% M\n    if EVEN_M:\n        rows = tl.max_contiguous(tl.multiple_of(rows, BLOCK), BLOCK)\n",
            "% N\n": "% N\n    if EVEN_N:\n        columns = tl.max_contiguous(tl.multiple_of(columns, BLOCK), BLOCK)\n",
        },
    ),
    Case(
        "triton-contiguity-hint",
        "needs blocks that start at multiples",
        WRAPPED.replace("(m * BLOCK +", "(m + 1 +").replace("(n * BLOCK +", "(n * 3 +"),
        None,
    ),
    Case(
        "triton-grouped-order",
        "swizzles two axes",
        MATMUL,
        {
            "n = tl.program_id(1)\n": "n = tl.program_id(1)\n    m, n = tl.swizzle2d(m, n, tl.num_programs(0), tl.num_programs(1), 8)\n"
        },
    ),
    Case("triton-grouped-order", "is for matrix products", ADD, None),
    Case(
        "triton-online-softmax",
        "merges the first two passes",
        SOFTMAX,
        {
            """        largest = tl.maximum(largest, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + offsets, mask=offsets < n, other=-float("inf"))
        total += tl.sum(tl.exp(x - largest), axis=0)
""": """        new_largest = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.where(largest == new_largest, 1.0, tl.exp(largest - new_largest)) + tl.sum(tl.exp(x - new_largest), axis=0)
        largest = new_largest
""",
            '    largest = -float("inf")\n': '    largest = -float("inf")\n    total = 0.0\n',
        },
    ),
    Case(
        "triton-online-softmax",
        "needs the same values in both",
        SOFTMAX.replace("tl.exp(x - largest), axis", "tl.exp(x * 2 - largest), axis"),
        None,
    ),
]


def rewritten(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_a_rule_rewrites_this_and_nothing_else(case: Case, newline: str) -> None:
    text = (IMPORTS + case.text).replace("\n", newline)
    (kernel,) = find_kernels(text).kernels
    texts = [c.text for c in catalogue.apply(case.rule, text, kernel)]
    if case.changes is None:
        assert texts == []
        return
    assert (IMPORTS + rewritten(case.text, case.changes)).replace("\n", newline) in texts


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.changes], ids=lambda case: f"{case.rule}: {case.name}"
)
def test_other_import_names_are_understood(case: Case) -> None:
    def respell(text: str) -> str:
        text = text.replace("import triton.language as tl", "from triton import language as lang")
        text = text.replace("import triton\n", "import triton as tt\n").replace(
            "triton.language", "TRITON.language"
        )
        return text.replace("tl.", "lang.").replace("triton.", "tt.").replace("TRITON.", "triton.")

    assert case.changes is not None
    text = respell(IMPORTS + case.text)
    texts = [c.text for c in catalogue.apply(case.rule, text, find_kernels(text).kernels[0])]
    assert respell(IMPORTS + rewritten(case.text, case.changes)) in texts


def test_every_rule_has_a_case_where_it_applies_and_one_where_it_must_not() -> None:
    for rule in catalogue.rules():
        if rule.dialect == "triton":
            assert {c.changes is None for c in CASES if c.rule == rule.name} == {True, False}, rule.name


RUNNER = """
import importlib.util, json, sys
import torch
torch.manual_seed(0)
x = torch.randn(64, 200)
results = {}
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("case", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results[path] = module.run(x).double().flatten().tolist()
print(json.dumps(results))
"""


@pytest.mark.triton
def test_rewritten_kernels_compute_the_same(tmp_path: Path) -> None:
    """All cases at once in one interpreter process: importing torch is what takes the time."""
    pairs: list[tuple[str, str, str]] = []
    for number, case in enumerate(c for c in CASES if c.changes and c.runs):
        text = IMPORTS + case.text
        before = tmp_path / f"before_{number}.py"
        before.write_text(text, "utf-8")
        for variant, candidate in enumerate(catalogue.apply(case.rule, text, find_kernels(text).kernels[0])):
            after = tmp_path / f"after_{number}_{variant}.py"
            after.write_text(candidate.text, "utf-8")
            pairs.append((case.name, str(before), str(after)))
    files = sorted({file for _, *both in pairs for file in both})
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, *files],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads(done.stdout)
    for name, before, after in pairs:
        assert results[after] == pytest.approx(results[before], rel=2e-5, abs=2e-5), name
