"""Each kind of problem, loaded as a child process loads it, and checked by the gate where its dialect can run."""

# ruff: noqa: E501 - sources, one case a line

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate_checking import Checker, codes, running_checker

from accelopt_profiling.gate.cases import CaseOptions
from accelopt_profiling.jobs import Source
from accelopt_profiling.problems.call import perform
from accelopt_profiling.problems.load import load_problem
from accelopt_profiling.problems.problem import Problem, ProblemError
from accelopt_profiling.problems.ref import ProblemKind, ProblemRef
from accelopt_profiling.worker.step import StepContext, StepFailed
from accelopt_profiling.worker.usercode import load_module

FEW = CaseOptions(distributions=["original", "negated"], shapes=1)


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with running_checker() as running:
        yield running


def context_of(folder: Path, files: dict[str, str], kernel: str = "k.py") -> StepContext:
    for name, text in files.items():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / name).write_text(text)
    return StepContext(folder, Source(kernel, files), lambda value: None)


def loaded(
    folder: Path, files: dict[str, str], kind: ProblemKind, path: str | None = "p.py", **options: Any
) -> Problem:
    return load_problem(context_of(folder, files), ProblemRef(kind, path, options=options), None)


SUM = "def kernel(x, y):\n    return x + y\n"
PROBLEM = "import numpy as np\nentry = 'kernel'\ndef get_inputs(n=4):\n    return [np.random.normal(size=n), np.ones(n)]\ndef reference(x, y):\n    return x + y\n"


def test_a_module_problem(tmp_path: Path) -> None:
    files = {"k.py": SUM, "p.py": PROBLEM + "shapes = [{'n': 7}]\ntolerance = 1e-3\n"}
    problem = loaded(tmp_path, files, "module")
    again = problem.inputs(3)
    assert np.array_equal(problem.inputs(3)[0], again[0])
    assert not np.array_equal(problem.inputs(4)[0], again[0])
    assert problem.inputs(3, problem.shapes[0])[0].shape == (7,)
    assert problem.tolerance.relative == 1e-3
    module = load_module(context_of(tmp_path, files))
    assert np.array_equal(problem.run(module, again)[0], (problem.reference(again) or [])[0])


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("def reference", "def other"), "problem-invalid", "no function `reference`"),
        (("def get_inputs", "def other"), "problem-invalid", "no function `get_inputs`"),
        (("entry = 'kernel'", "tolerance = -1"), "problem-invalid", "`tolerance`"),
        (("entry = 'kernel'", "tolerance = float('nan')"), "problem-invalid", "`tolerance`"),
        (("entry = 'kernel'", "shapes = 'abc'"), "problem-invalid", "`shapes`"),
        (
            ("import numpy as np", "import numpy as np, surely_not_installed"),
            "missing-package",
            "surely_not_installed",
        ),
        (("import numpy as np", "1 / 0"), "user-error", "ZeroDivisionError"),
    ],
)
def test_a_module_problem_that_cannot_be_loaded(
    change: tuple[str, str], code: str, said: str, tmp_path: Path
) -> None:
    files = {"k.py": SUM, "p.py": PROBLEM.replace(*change)}
    with pytest.raises((ProblemError, StepFailed)) as raised:
        loaded(tmp_path, files, "module")
    error = raised.value.error if isinstance(raised.value, StepFailed) else raised.value
    assert error.code == code
    assert said in error.message


@pytest.mark.parametrize(
    ("kernel", "count", "answer"),
    [
        ("def launch(x): add[1](x)\n", 1, "launch"),
        ("def launch(x, n=3): add[1](x)\n", 1, "launch"),
        ("def launch(*x): add[1](x)\n", 3, "launch"),
        ("def inner(x): add[1](x)\ndef outer(x): return inner(x)\n", 1, "outer"),
        ("def launch(x): add[1](x)\ndef other(x, y): add[1](x)\n", 2, "other"),
        ("def _launch(x): add[1](x)\ndef test_it(x): add[1](x)\ndef launch(x): add[1](x)\n", 1, "launch"),
        ("def launch(x): add[1](x)\n", 2, "takes 2 inputs (launch: no match)"),
        ("def launch(x, *, n): add[1](x)\n", 1, "no match"),
        ("def a(x): add[1](x)\ndef b(x): add[1](x)\n", 1, "(a, b)"),
        ("", 1, "name one with `entry"),
    ],
)
def test_the_entry_point_is_found_by_syntax(kernel: str, count: int, answer: str, tmp_path: Path) -> None:
    text = "import triton\n@triton.jit\ndef add(x): pass\n" + kernel
    inputs = f"[{', '.join('0' * count)}]"
    problem = f"def get_inputs(): return {inputs}\ndef reference(*x): return x\n"
    loading = loaded(tmp_path, {"k.py": text, "p.py": problem}, "module")
    if answer.isidentifier():
        assert loading.call(loading.inputs(0))[0].function == answer
        return
    with pytest.raises(ProblemError) as raised:
        loading.call(loading.inputs(0))
    assert answer in raised.value.message


NKIBENCH = """
import numpy as np
ROWS = 256
def get_inputs():
    return [np.random.normal(size=(ROWS, 512)).astype(np.float32), 1e-5]
def forward(x, eps):
    return (x / np.sqrt((x * x).mean(1, keepdims=True) + eps)).reshape(-1)
def transform_to_nki_inputs(inputs):
    return [inputs[0].reshape(128, 2, 512), inputs[1]]
def transform_nki_outputs(result, reference):
    return [np.reshape(result, reference.shape)]
"""
NKI = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x, eps):
    out = nl.ndarray((128, 2, 512), dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        tile = nl.load(x[p, i, f])
        mean = nl.multiply(nl.sum(nl.square(tile), axis=1, keepdims=True), 1.0 / 512)
        nl.store(out[p, i, f], value=nl.multiply(tile, nl.rsqrt(nl.add(mean, eps))))
    return out
"""


def test_nkibench_through_the_gate(checker: Checker, tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "rms_M256_numpy_0.py").write_text(NKIBENCH)
    path = kernels / "rms_M256_0.py"
    path.write_text(NKI)
    verdict, receipt = checker.file(path, NKI, "trn1", CaseOptions(distributions=["original", "small"]))
    assert verdict.accepted, verdict.reasons
    assert receipt.body["tolerance_stated"]["relative"] == 2e-5
    for wrong, code in (
        (NKI.replace("nl.add(mean, eps)", "mean"), "wrong-result"),
        (NKI.replace("affine_range(2)", "affine_range(1)"), "not-finite"),
    ):
        assert (
            codes(checker.file(path, wrong, "trn1", CaseOptions(distributions=["original", "small"]))[0])[0]
            == code
        )
    misshapen = NKI.replace("(128, 2, 512), dtype", "(128, 2, 500), dtype").replace(
        "arange(512)", "arange(500)"
    )
    assert codes(checker.file(path, misshapen, "trn1", FEW)[0])[0] == "wrong-shape"


KERNELBENCH = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self, features, bias):
        super().__init__()
        self.linear = nn.Linear(features, 8, bias=bias)
    def forward(self, x):
        return torch.relu(self.linear(x))
def get_inputs():
    return [torch.rand(16, 32)]
def get_init_inputs():
    return [32, True]
"""
MODEL_NEW = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.maximum(tl.load(x + at, mask=at < n), 0.0), mask=at < n)

class ModelNew(nn.Module):
    def __init__(self, features, bias):
        super().__init__()
        self.linear = nn.Linear(features, 8, bias=bias)
    def forward(self, x):
        assert x.is_cuda
        out = self.linear(x)
        relu_kernel[(triton.cdiv(out.numel(), 64),)](out, out.numel(), BLOCK=64)
        return out
"""


@pytest.mark.triton
def test_kernelbench_through_the_gate(checker: Checker, tmp_path: Path) -> None:
    (tmp_path / "19_Linear.py").write_text(KERNELBENCH)
    path = tmp_path / "19_Linear_triton.py"
    path.write_text(MODEL_NEW)
    verdict, _ = checker.file(path, MODEL_NEW, "h100", FEW)
    assert verdict.accepted, verdict.reasons
    assert verdict.checks[0]["reference_precision"] == "float64"
    wrong = MODEL_NEW.replace("0.0), mask=at < n)", "-0.05), mask=at < n)")
    assert "wrong-result" in codes(checker.file(path, wrong, "h100", FEW)[0])
    bypass = MODEL_NEW.replace(
        "        out = self.linear(x)", "        return torch.relu(self.linear(x))\n        out = x"
    )
    assert "never-launched" in codes(checker.file(path, bypass, "h100", FEW)[0])
    both = KERNELBENCH + MODEL_NEW
    path.write_text(both)
    cheat = both.replace("        out = self.linear(x)", "        return Model(32, True)(x)\n        out = x")
    assert codes(checker.file(path, cheat, "h100", FEW)[0]) == ["kernel-raised"]


DEFINITION: dict[str, Any] = {
    "name": "scale_n",
    "op_type": "scale",
    "axes": {"m": {"type": "var"}, "n": {"type": "const", "value": 96}},
    "inputs": {
        "x": {"shape": ["m", "n"], "dtype": "bfloat16"},
        "w": {"shape": ["n"], "dtype": "float32"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["m", "n"], "dtype": "bfloat16"}},
    "reference": "import torch\ndef run(x, w, eps):\n    f = x.float()\n    return (f / torch.sqrt(f.pow(2).mean(-1, keepdim=True) + eps) * w).to(x.dtype)\n",
}
WORKLOADS = [
    {
        "workload": {
            "axes": {"m": 24},
            "inputs": {
                "x": {"type": "random"},
                "w": {"type": "random"},
                "eps": {"type": "scalar", "value": 1e-6},
            },
            "uuid": "a",
        }
    },
    {
        "axes": {"m": 5},
        "inputs": {"x": {"type": "safetensors", "path": "x", "tensor_key": "x"}},
        "uuid": "stored",
    },
    {"axes": {"m": 5}, "inputs": {"eps": {"type": "scalar", "value": 1e-6}}, "uuid": "b"},
]
RUN = """
import triton
import triton.language as tl

@triton.jit
def rms_kernel(x, w, y, eps, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    f = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(f * f, axis=0) / n + eps)
    tl.store(y + row + at, (f * scale * tl.load(w + at, mask=at < n, other=0.0)).to(tl.bfloat16), mask=at < n)

def run(x, w, eps, y):
    rms_kernel[(x.shape[0],)](x, w, y, eps, x.shape[1], BLOCK=128)
"""


def flashinfer_files(definition: dict[str, Any] = DEFINITION, workloads: Any = None) -> dict[str, str]:
    lines = "\n".join(json.dumps(w) for w in (WORKLOADS if workloads is None else workloads))
    return {"k.py": RUN, "k.json": json.dumps(definition), "k.jsonl": lines}


@pytest.mark.triton
def test_flashinfer_through_the_gate(checker: Checker, tmp_path: Path) -> None:
    for name, text in flashinfer_files().items():
        (tmp_path / name).write_text(text)
    verdict, receipt = checker.file(tmp_path / "k.py", RUN, "h100", FEW)
    assert verdict.accepted, verdict.reasons
    assert [d["shapes"][0] for d in receipt.body["inputs"]][:2] == [[24, 96], [5, 96]]
    assert verdict.checks[0]["outputs"][0]["dtype"] == "bfloat16"
    wrong = RUN.replace("/ n + eps", "/ BLOCK + eps")
    assert "wrong-result" in codes(checker.file(tmp_path / "k.py", wrong, "h100", FEW)[0])
    returning = (
        RUN.replace("(x, w, eps, y):", "(x, w, eps):\n    import torch\n    y = torch.empty_like(x)")
        + "    return y\n"
    )
    (tmp_path / "k.py").write_text(returning)
    assert checker.file(tmp_path / "k.py", returning, "h100", FEW)[0].accepted


@pytest.mark.triton
@pytest.mark.parametrize(
    ("change", "workloads", "said"),
    [
        ({"axes": []}, None, '"axes" must be an object'),
        ({"axes": {"n": {"type": "const"}}}, None, 'axis "n"'),
        ({"inputs": {}}, None, '"inputs" must be an object'),
        ({"inputs": {"x": {"shape": ["k"], "dtype": "float32"}}}, None, 'unknown axis "k"'),
        ({"inputs": {"x": {"shape": ["n"], "dtype": "float4_e2m1"}}}, None, "float4_e2m1"),
        ({"reference": "def go(): pass"}, None, "no function `run`"),
        ({"reference": "def run(:"}, None, "does not parse"),
        ({}, [], "it is empty"),
        ({}, [WORKLOADS[1]], "safetensors"),
        ({}, [{"axes": {}}], "no size for the axis m"),
        ({}, [{"axes": {"m": "5"}}], "is no workload"),
        ({}, [[1]], "not a JSON object"),
    ],
)
def test_a_definition_that_cannot_be_used(
    change: dict[str, Any], workloads: Any, said: str, tmp_path: Path
) -> None:
    files = flashinfer_files({**DEFINITION, **change}, workloads)
    with pytest.raises(ProblemError) as raised:
        loaded(tmp_path, files, "flashinfer", "k.json", workloads="k.jsonl")
    assert said in raised.value.message


SELFRUN = """
import torch
import triton
import triton.language as tl

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def double(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
"""
RUNS = {
    "main": "\nif __name__ == '__main__':\n    print(double(torch.randn(100, device='cuda')).sum())\n    double(torch.randn(7, device='cuda'))\n",
    "statements": "\ntorch.manual_seed(0)\nx = torch.randn(100, device='cuda')\nassert torch.allclose(double(x), x + x)\ndouble(x[:7])\n",
    "a test": "\nimport pytest\n@pytest.mark.parametrize('n, scale', [(100, 1.0), (3, 2.0)])\ndef test_double(n, scale):\n    double(torch.randn(n, device='cuda') * scale)\n    double(torch.randn(7, device='cuda'))\n",
    "an autograd function": "\nclass Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return double_in(x)\n\ndouble_it = Double.apply\nif __name__ == '__main__':\n    double_it(torch.randn(100, device='cuda'))\n    double_it(torch.randn(7, device='cuda'))\n",
}  # fmt: skip


@pytest.mark.triton
@pytest.mark.parametrize("way", RUNS)
def test_a_file_that_runs_itself_through_the_gate(way: str, checker: Checker, tmp_path: Path) -> None:
    text = SELFRUN + RUNS[way]
    if "double_in" in text:
        text = text.replace("def double(x)", "def double_in(x)")
    path = tmp_path / "k.py"
    path.write_text(text)
    verdict, receipt = checker.file(path, text, "h100", FEW)
    assert verdict.accepted, verdict.reasons
    assert [d["shapes"] for d in receipt.body["inputs"]][:2] == [[[100]], [[7]]]
    assert verdict.checks[0]["reference_precision"] == "float32"
    wrong = text.replace(" * 2, mask", " * 2.01, mask")
    expected = "kernel-raised" if "assert" in text else "wrong-result"  # the file's own check comes first
    assert codes(checker.file(path, wrong, "h100", FEW)[0])[0] == expected


def test_a_file_that_runs_itself_without_a_function_cannot_be_compared(
    checker: Checker, tmp_path: Path
) -> None:
    text = NKI + "\nif __name__ == '__main__':\n    print(len([kernel]))\n"
    path = tmp_path / "k.py"
    path.write_text(text)
    verdict, _ = checker.file(path, text, "trn1", FEW)
    assert codes(verdict) == ["problem-invalid"]
    assert "called none of `kernel`" in verdict.reasons[0].message
    runs = "\nif __name__ == '__main__':\n    import numpy as np\n    kernel(np.random.normal(size=(128, 2, 512)).astype(np.float32), 1e-5)\n"
    path.write_text(NKI + runs)
    assert checker.file(path, NKI + runs, "trn1", FEW)[0].accepted
    wrong = (NKI + runs).replace("1.0 / 512", "1.0 / 500")
    assert "wrong-result" in codes(checker.file(path, wrong, "trn1", FEW)[0])


def test_what_a_problem_leaves_behind_is_its_own(tmp_path: Path) -> None:
    main, path = sys.modules["__main__"], list(sys.argv)
    text = "def f(x):\n    return x\nif __name__ == '__main__':\n    f(3)\n    raise SystemExit(0)\n"
    problem = loaded(tmp_path, {"k.py": text}, "selfrun", None, main=True, recorded=["f"], functions=[])
    assert problem.inputs(0) == ["f", 3]
    call, arguments = problem.call(problem.inputs(0))
    module = load_module(context_of(tmp_path, {"k.py": text}))
    assert perform(module, call, arguments) == [3]
    assert sys.modules["__main__"] is main
    assert sys.argv == path
