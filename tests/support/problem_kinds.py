"""One small kernel for each kind of problem, with a right and a wrong rewrite of it.

Where a kind of problem can say how a kernel's outputs lie, they lie in another order than the reference's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

_NKI = """
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

COLUMNS = 128


@nki.jit
def silu(x):
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(128)[:, None]
    columns = nl.arange(COLUMNS)[None, :]
    for i in nl.affine_range(m // 128):
        for j in nl.affine_range(n // COLUMNS):
            tile = nl.load(x[i * 128 + rows, j * COLUMNS + columns])
            shown = nl.multiply(tile, nl.sigmoid(tile))
            nl.store(out[i * 128 + rows, j * COLUMNS + columns], shown)
    return out
"""
_INPUTS = """
import numpy as np

def get_inputs():
    return [np.random.normal(size=(256, 2048)).astype(np.float32)]
"""
_REFERENCE = "\ndef reference(x):\n    return x / (1 + np.exp(-x))\n"

#: The kernel's tiles lie as (partition, tile, column): another order than the reference's, and another shape.
_TILED = """
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

COLUMNS = 128


@nki.jit
def kernel(x):
    out = nl.ndarray((128, x.shape[0], x.shape[2]), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(128)[:, None]
    columns = nl.arange(COLUMNS)[None, :]
    for i in nl.affine_range(x.shape[0]):
        for j in nl.affine_range(x.shape[2] // COLUMNS):
            tile = nl.load(x[i, rows, j * COLUMNS + columns])
            shown = nl.multiply(tile, nl.sigmoid(tile))
            nl.store(out[rows, i, j * COLUMNS + columns], shown)
    return out
"""
_NKIBENCH = """
import numpy as np

def get_inputs():
    return [np.random.normal(size=(256, 2048)).astype(np.float32)]

def forward(x):
    return x / (1 + np.exp(-x))

def transform_to_nki_inputs(inputs):
    return [inputs[0].reshape(2, 128, 2048)]

def transform_nki_outputs(result, reference):
    return [np.swapaxes(result, 0, 1).reshape(reference.shape)]
"""

_MODEL = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return torch.relu(x * self.weight)

def get_inputs():
    return [torch.randn(64, 128)]

def get_init_inputs():
    return [128]
"""
_MODEL_NEW = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x, w, out, n, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * tl.load(w + at % columns, mask=at < n)
    tl.store(out + at, tl.maximum(value, 0.0), mask=at < n)

class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, self.weight, out, x.numel(), x.shape[1], BLOCK=256)
        return out
"""

#: Outputs are passed after the inputs.
_DEFINITION = {
    "name": "scale",
    "op_type": "scale",
    "axes": {"m": {"type": "var"}, "n": {"type": "const", "value": 96}},
    "inputs": {"x": {"shape": ["m", "n"], "dtype": "float32"}, "w": {"shape": ["n"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["m", "n"], "dtype": "float32"}},
    "reference": "import torch\ndef run(x, w):\n    return x * w\n",
}
_RUN = """
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x, w, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    value = tl.load(x + row + at, mask=at < n) * tl.load(w + at, mask=at < n)
    tl.store(y + row + at, value, mask=at < n)

def run(x, w, y):
    scale_kernel[(x.shape[0],)](x, w, y, x.shape[1], BLOCK=128)
"""

_SELFRUN = (
    _NKI
    + """

def run_silu(x):
    return silu(x)


if __name__ == "__main__":
    run_silu(np.random.default_rng(0).standard_normal((256, 2048)).astype(np.float32))
"""
)


_TASK = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "eval.py", "source": "../eval.py"}
tests:
  - {size: 130, "seed": 4}
benchmarks:
  - {"size": 512, "seed": 3}
"""
_GPUMODE_REFERENCE = """
import torch
from task import input_t
from utils import scaled

def generate_input(size, seed):
    torch.manual_seed(seed)
    return torch.randn(size), torch.randn(size), torch.empty(size)

def ref_kernel(data):
    x, w, y = data
    y[...] = scaled(x, w)
    return y
"""
_SUBMISSION = """
import triton
import triton.language as tl
from task import input_t

@triton.jit
def scale_kernel(x, w, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * tl.load(w + at, mask=at < n)
    tl.store(y + at, value, mask=at < n)

def custom_kernel(data: input_t):
    x, w, y = data
    scale_kernel[(triton.cdiv(x.numel(), 128),)](x, w, y, x.numel(), BLOCK=128)
    return y
"""
_LAUNCH = """
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x, w, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * tl.load(w + at, mask=at < n)
    tl.store(y + at, value, mask=at < n)
"""
_LAUNCHED = """
import torch

entry = "scale_kernel"
grid = ["cdiv(n, BLOCK)"]
keywords = ["n", "BLOCK"]

def get_inputs(n=4096):
    return [torch.randn(n), torch.randn(n), torch.empty(n), n, 128]
"""

#: As much of tritonbench as an operator uses; its own refuses modules outside of its package, too.
_TRITON_OP = """
import argparse

def register_benchmark(baseline=False, enabled=True):
    def decorator(function):
        assert "tritonbench.operators." in function.__module__, function.__module__
        return lambda self, *args, **kwargs: function(self, *args, **kwargs)
    return decorator

class Counting(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.count_example_inputs()
        return made

class BenchmarkOperator(metaclass=Counting):
    def __init__(self, tb_args, extra_args=None):
        self.tb_args, self.device = tb_args, tb_args.device
        assert argparse.Namespace in type(tb_args).__mro__ and tb_args.cudagraph is None

    def count_example_inputs(self):
        raise RuntimeError("draws all inputs")
"""
_OPERATOR = """
import torch
import triton
from tritonbench.utils.triton_op import BenchmarkOperator, register_benchmark
from .kernels import scale_kernel

def scaled(x, w):
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 128),)](x, w, y, x.numel(), BLOCK=128)
    return y

class Operator(BenchmarkOperator):
    @register_benchmark(baseline=True)
    def eager(self, x, w):
        return lambda: x * w

    @register_benchmark()
    def with_a_buffer(self, x, w):
        return lambda: {"output": scaled(x, w), "buffer": torch.zeros(2)}

    @register_benchmark()
    def in_place(self, x, w):
        def inner():
            scaled(x, w)
        return inner

    @register_benchmark(enabled=False)
    def of_another_package(self, x, w):
        raise RuntimeError

    def get_input_iter(self):
        for size in (130, 512):
            yield torch.randn(size, device=self.device), torch.randn(size, device=self.device)
"""
_IN_THE_OPERATOR = _OPERATOR.replace("from .kernels import scale_kernel\n", _LAUNCH)

_TRITONBENCH = {
    "tritonbench/__init__.py": "", "tritonbench/utils/__init__.py": "",
    "tritonbench/utils/triton_op.py": _TRITON_OP, "tritonbench/operators/__init__.py": "",
    "tritonbench/operators/scale/__init__.py": "from .operator import Operator\n",
}  # fmt: skip


@dataclass(frozen=True)
class ProblemCase:
    """``files`` are written to a folder, ``kernel`` is the kernel's among them. ``rewrite`` and ``fault`` replace a
    part of it: by one that is as right, and by one that is wrong. ``problem`` is what a command is given. ``checks``
    tells that the profile has a reference to compare with.
    """

    files: dict[str, str]
    rewrite: tuple[str, str]
    fault: tuple[str, str]
    problem: str = ""
    kernel: str = "k.py"
    name: str = "silu"
    target: str = "trn1"
    checks: bool = True

    def write(self, folder: Path) -> Path:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        return folder / self.kernel

    def changed(self, part: tuple[str, str]) -> str:
        text = self.files[self.kernel]
        assert part[0] in text
        return text.replace(*part)


_FASTER = ("COLUMNS = 128", "COLUMNS = 512")
_WRONG = ("nl.sigmoid(tile)", "nl.sigmoid(nl.multiply(tile, 0.9))")

KINDS = {
    "named in a comment": ProblemCase(
        {"k.py": "# accelopt: problem=shared/of_silu.py" + _NKI, "shared/of_silu.py": _INPUTS + _REFERENCE},
        _FASTER, _WRONG, "shared/of_silu.py",
    ),
    "module": ProblemCase({"k.py": _NKI, "k_problem.py": _INPUTS + _REFERENCE}, _FASTER, _WRONG, "k_problem.py"),
    "nkibench": ProblemCase(
        {"kernels/k_M256_0.py": _TILED, "reference/k_M256_numpy_0.py": _NKIBENCH},
        _FASTER, _WRONG, "reference/k_M256_numpy_0.py", "kernels/k_M256_0.py", "kernel",
    ),
    "kernelbench": ProblemCase(
        {"19_ReLU_triton.py": _MODEL_NEW, "19_ReLU.py": _MODEL},
        ("BLOCK=256", "BLOCK=512"), ("tl.maximum(value, 0.0)", "tl.maximum(value, -0.1)"),
        "19_ReLU.py", "19_ReLU_triton.py", "relu_kernel", "h100",
    ),
    "flashinfer": ProblemCase(
        {"k.py": _RUN, "k.json": json.dumps(_DEFINITION),
         "k.jsonl": json.dumps({"axes": {"m": 24}, "inputs": {}, "uuid": "a"}) + "\n"},
        ("BLOCK=128", "BLOCK=256"), ("tl.load(w + at,", "0.9 * tl.load(w + at,"),
        "k.json", "k.py", "scale_kernel", "h100",
    ),
    "gpumode": ProblemCase(
        {"scale/submissions/k.py": _SUBMISSION, "scale/task.yml": _TASK, "scale/task.py": "input_t = tuple\n",
         "scale/reference.py": _GPUMODE_REFERENCE, "utils.py": "def scaled(x, w):\n    return x * w\n",
         "eval.py": "raise SystemExit(1)\n"},
        ("BLOCK=128", "BLOCK=256"), ("tl.load(w + at,", "0.9 * tl.load(w + at,"),
        "scale/task.yml", "scale/submissions/k.py", "scale_kernel", "h100",
    ),
    "tritonbench": ProblemCase(
        {**_TRITONBENCH, "tritonbench/operators/scale/operator.py": _OPERATOR,
         "tritonbench/operators/scale/kernels.py": _LAUNCH},
        ("tl.load(x + at, mask=at < n) * tl.load(w + at, mask=at < n)",
         "tl.load(w + at, mask=at < n) * tl.load(x + at, mask=at < n)"),
        ("mask=at < n) * tl", "mask=at < n) * 0.9 * tl"),
        "tritonbench/operators/scale/operator.py", "tritonbench/operators/scale/kernels.py", "scale_kernel", "h100",
    ),
    "tritonbench, kernels in the operator": ProblemCase(
        {**_TRITONBENCH, "tritonbench/operators/scale/operator.py": _IN_THE_OPERATOR},
        ("BLOCK=128)", "BLOCK=256)"), ("mask=at < n) * tl", "mask=at < n) * 0.9 * tl"),
        "tritonbench/operators/scale/operator.py", "tritonbench/operators/scale/operator.py", "scale_kernel", "h100",
    ),
    "without a reference": ProblemCase(
        {"k.py": _NKI, "k_problem.py": _INPUTS}, _FASTER, _WRONG, "k_problem.py", checks=False
    ),
    "a kernel and its grid": ProblemCase(
        {"k.py": _LAUNCH, "k_problem.py": _LAUNCHED},
        ("tl.load(x + at, mask=at < n) * tl.load(w + at, mask=at < n)",
         "tl.load(w + at, mask=at < n) * tl.load(x + at, mask=at < n)"),
        ("mask=at < n) * tl", "mask=at < n) * 0.9 * tl"),
        "k_problem.py", "k.py", "scale_kernel", "h100", checks=False,
    ),
    "runs itself": ProblemCase({"k.py": _SELFRUN}, _FASTER, _WRONG, "k.py", checks=False),
}  # fmt: skip

#: What goes through a front end: one kind of each dialect, and one whose result nothing says. Every kind goes through
#: the profile and the gate (``tests/cli/test_every_problem.py``), which take it from there.
AT_A_FRONT_END = ["module", "kernelbench", "runs itself"]

#: Nothing says what inputs the kernel takes.
NOTHING = ProblemCase({"k.py": _NKI}, _FASTER, _WRONG)
