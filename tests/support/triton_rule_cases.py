# ruff: noqa: E501 (kernels as they are written)
"""Cases of the Triton rules: what each makes of a kernel and its launch, and what it leaves alone."""

from __future__ import annotations

from dataclasses import dataclass

from support.triton_rule_kernels import (
    ADD,
    BLOCK_POINTER,
    MATMUL,
    REDUCE,
    SCALE,
    SOFTMAX,
    STORING,
    STRIDED,
    TUNED,
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
        "changes the variable behind it",
        ADD.replace("    n = x.numel()", "    n = x.numel()\n    warps = 4").replace(
            "num_warps=4", "num_warps=warps"
        ),
        {"warps = 4": "warps = 8"},
    ),
    Case(
        "triton-num-warps",
        "leaves a variable that depends on something",
        ADD.replace(
            "    n = x.numel()", "    n = x.numel()\n    warps = 4\n    if n > 4096:\n        warps = 8"
        ).replace("num_warps=4", "num_warps=warps"),
        None,
    ),
    Case(
        "triton-num-warps",
        "leaves a number that it does not know",
        ADD.replace("num_warps=4", "num_warps=warps(n)"),
        None,
    ),
    Case(
        "triton-num-warps",
        "adds a config beside those that a comprehension makes",
        ADD.replace(
            "@triton.jit",
            '@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (256, 512)], key=["n"])\n@triton.jit',
        ).replace(", BLOCK=256, num_warps=4", ""),
        {"for b in (256, 512)]": 'for b in (256, 512)] + [triton.Config({"BLOCK": 512}, num_warps=8)]'},
        runs=False,
    ),
    Case("triton-fitting-warps", "counts fixed lanes", ADD, {"num_warps=4": "num_warps=1"}),
    Case(
        "triton-fitting-warps",
        "counts the lanes of a block that a pointer stands for",
        BLOCK_POINTER,
        {"num_warps=4": "num_warps=1"},
    ),
    Case(
        "triton-fitting-warps",
        "reads annotations that are text",
        ADD.replace(": tl.constexpr", ': "tl.constexpr"'),
        {"num_warps=4": "num_warps=1"},
        runs=False,  # Triton's interpreter does not read them
    ),
    Case(
        "triton-fitting-warps",
        "counts the lanes of a tile",
        SCALE.replace("tl.arange(0, BLOCK)", "tl.sum(tl.arange(0, BLOCK)[:, None] * 1, axis=1)").replace(
            "BLOCK=64", "BLOCK=32, num_warps=8"
        ),
        {"num_warps=8": "num_warps=4"},
    ),
    Case(
        "triton-fitting-warps",
        "follows the length that the launch computes",
        ADD.replace("cdiv(n, 256)", "cdiv(n, size)")
        .replace("    n = x.numel()", "    n = x.numel()\n    size = triton.next_power_of_2(x.shape[1])")
        .replace("BLOCK=256, num_warps=4", "BLOCK=size"),
        {"BLOCK=size": "BLOCK=size, num_warps=min(4, triton.cdiv(size, 256))"},
    ),
    Case(
        "triton-fitting-warps",
        "leaves a name that the file gives to something else",
        ADD.replace("cdiv(n, 256)", "cdiv(n, size)")
        .replace("    n = x.numel()", "    n = x.numel()\n    min = 2\n    size = triton.next_power_of_2(n)")
        .replace("BLOCK=256", "BLOCK=size"),
        None,
    ),
    Case("triton-fitting-warps", "leaves products alone", MATMUL, None),
    Case(
        "triton-fitting-warps",
        "leaves a number that it does not know",
        ADD.replace("num_warps=4", "num_warps=warps(n)"),
        None,
    ),
    Case("triton-fitting-warps", "leaves warps that are full", ADD.replace("256", "1024"), None),
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
        "triton-contiguous-lanes",
        "takes blocks",
        STRIDED,
        {
            "tl.program_id(0) + tl.arange(0, BLOCK) * tl.num_programs(0)": "tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"
        },
    ),
    Case("triton-contiguous-lanes", "leaves blocks", ADD, None),
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
        "moves past a store to memory that the launch allocates",
        STORING,
        {
            "        first = row * 1\n        w = tl.load(w_ptr + first)\n": "",
            "    for start": "    first = row * 1\n    w = tl.load(w_ptr + first)\n    for start",
        },
    ),
    Case(
        "triton-hoist-load",
        "does not move past a store to what may be the same memory",
        STORING.replace("(x, x, out,", "(x, x, x,"),
        None,
    ),
    Case(
        "triton-hoist-load",
        "does not move past a function that may store",
        REDUCE.replace("total += x * w", "update(out_ptr, x)\n        total += x * w"),
        None,
    ),
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
        base_largest = tl.where(new_largest == -float("inf"), 0.0, new_largest)
        total = total * tl.exp(largest - base_largest) + tl.sum(tl.exp(x - base_largest), axis=0)
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
