"""Small checkouts in the layouts of KernelBench, FlashInfer-Bench and NKIBench, with kernels that take no time."""

from __future__ import annotations

import json
from pathlib import Path

from support.synthetic_checkout import kernel, write_checkout

REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y


def get_inputs():
    return [torch.randn(700), torch.randn(700)]


def get_init_inputs():
    return []
"""
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


"""
LAUNCH = """out = torch.empty_like(x)
add[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
return out
"""


def indented(text: str, depth: int) -> str:
    return "".join(f"{'    ' * depth}{line}\n" for line in text.splitlines())


MODEL = f"{KERNEL}class ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n{indented(LAUNCH, 2)}"
RUN = f"{KERNEL}def run(x, y):\n{indented(LAUNCH, 1)}"


def kernelbench_checkout(root: Path) -> tuple[Path, Path]:
    level, kernels = root / "set" / "KernelBench" / "level1", root / "kernels"
    level.mkdir(parents=True)
    (kernels / "level1").mkdir(parents=True)
    for name in ("1_Add", "2_Sum", "10_Absent"):
        (level / f"{name}.py").write_text(REFERENCE)
    (kernels / "level1" / "1_Add_triton.py").write_text(MODEL)
    (kernels / "level_1_problem_2_sample_3_kernel.py").write_text(MODEL)
    (kernels / "level_1_problem_2_sample_0_kernel.py").write_text(MODEL.replace("mask) + tl", "mask) - tl"))
    return root / "set", kernels


def flashinfer_checkout(root: Path) -> Path:
    definition = {
        "name": "add_n", "op_type": "add", "axes": {"n": {"type": "var"}},
        "inputs": {k: {"shape": ["n"], "dtype": "float32"} for k in ("x", "y")},
        "outputs": {"out": {"shape": ["n"], "dtype": "float32"}},
        "reference": "def run(x, y):\n    return x + y\n",
    }  # fmt: skip
    lines = [{"definition": "add_n", "workload": {"axes": {"n": n}, "inputs": {"x": {"type": k}}, "uuid": str(n)}}
             for n, k in ((100, "safetensors"), (700, "random"), (300, "random"), (900, "random"))]  # fmt: skip
    good = {
        "name": "add_triton", "definition": "add_n",
        "spec": {"language": "triton", "entry_point": "main.py::run", "destination_passing_style": False},
        "sources": [{"path": "main.py", "content": RUN}],
    }  # fmt: skip
    outside = {**good, "name": "add_outside", "sources": [{"path": "../main.py", "content": RUN}]}
    cuda = {**good, "name": "add_cuda", "spec": {"language": "cuda", "entry_point": "main.cu::run"}}
    texts = {
        "definitions/add/add_n.json": json.dumps(definition),
        "workloads/add/add_n.jsonl": "\n".join(map(json.dumps, lines)),
        **{f"solutions/{s['name']}.json": json.dumps(s) for s in (good, outside, cuda)},
        "solutions/broken.json": "{",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def nkibench_checkout(root: Path) -> Path:
    """One task whose kernel computes exponentials and their logarithms for nothing."""
    folder = write_checkout(root, ("silu",))
    slow = kernel().replace(
        "v5 = nl.multiply(v4, v2)",
        "v6 = nl.exp(v4)\n    v6 = nl.log(v6)\n    " * 6 + "v5 = nl.multiply(v4, v2)",
    )
    (folder / "kernels" / "silu_M256_N512_0.py").write_text(slow)
    return folder
