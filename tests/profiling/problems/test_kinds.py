"""Problems in Python: a module, NKIBench, KernelBench; loaded as a child process loads them, and checked by the gate."""

# ruff: noqa: E501 - sources, one case a line

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.gate_checker import Checker, codes
from support.problem_files import FEW, NKI, changed, context_of, loaded

from accelopt_profiling.gate.request import CaseOptions
from accelopt_profiling.problems.call import run_problem
from accelopt_profiling.problems.problem import ProblemError
from accelopt_profiling.step_context import StepFailedError
from accelopt_profiling.worker.usercode import load_module

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
    assert np.array_equal(run_problem(problem, module, again)[0], (problem.reference(again) or [])[0])


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
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
    change: tuple[str, str], code: str, message: str, tmp_path: Path
) -> None:
    files = {"k.py": SUM, "p.py": PROBLEM.replace(*change)}
    with pytest.raises((ProblemError, StepFailedError)) as raised:
        loaded(tmp_path, files, "module")
    error = raised.value.error if isinstance(raised.value, StepFailedError) else raised.value
    assert error.code == code
    assert message in error.message


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
        ("def _launch(x): add[1](x)\n", 1, '"`, such as `_launch`.'),
        (
            "class Add(torch.autograd.Function):\n    def forward(c, x): return _launch(x)\ndef _launch(x): add[1](x)\n",
            1,
            "such as `Add.apply`, `_launch`.",
        ),
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


def test_an_entry_point_may_be_a_function_of_a_class(tmp_path: Path) -> None:
    kernel = SUM + "class Sum:\n    @staticmethod\n    def apply(x, y):\n        return kernel(x, y)\n"
    files = {"k.py": kernel, "p.py": PROBLEM.replace("'kernel'", "'Sum.apply'")}
    problem = loaded(tmp_path, files, "module")
    module = SimpleNamespace(Sum=SimpleNamespace(apply=lambda x, y: x + y))
    inputs = problem.inputs(0)
    assert np.array_equal(run_problem(problem, module, inputs)[0], inputs[0] + inputs[1])
    with pytest.raises(ProblemError, match=r"no function `Sum\.apply`"):
        run_problem(problem, SimpleNamespace(Sum=None), inputs)


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


#: What is changed in the kernel, and the first reason that the gate then gives.
NKI_CHANGES = {
    "right": ({}, "one-size"),
    "without eps": ({"nl.add(mean, eps)": "mean"}, "wrong-result"),
    "half of the rows": ({"affine_range(2)": "affine_range(1)"}, "not-finite"),
    "another shape": ({"(128, 2, 512), dtype": "(128, 2, 500), dtype", "arange(512)": "arange(500)"}, "wrong-shape"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", NKI_CHANGES)
def test_nkibench_through_the_gate(change: str, checker: Checker, tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "rms_M256_numpy_0.py").write_text(NKIBENCH)
    path = tmp_path / "kernels" / "rms_M256_0.py"
    path.write_text(NKI)
    candidate, code = changed(NKI, NKI_CHANGES[change])
    verdict, receipt = checker.file(path, candidate, "trn1", CaseOptions(distributions=["original", "small"]))
    assert codes(verdict)[:1] == code
    assert verdict.accepted is (change == "right")
    assert receipt.body["tolerance_stated"]["relative"] == 2e-5


KERNELBENCH = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self, features, shift):
        super().__init__()
        self.weight, self.shift = nn.Parameter(torch.randn(features)), shift
    def forward(self, x):
        return torch.relu(x * self.weight + self.shift)
def get_inputs():
    return [torch.rand(16, 32)]
def get_init_inputs():
    return [32, 0.25]
"""
MODEL_NEW = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x, w, out, shift, n, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * tl.load(w + at % columns, mask=at < n) + shift
    tl.store(out + at, tl.maximum(value, 0.0), mask=at < n)

class ModelNew(nn.Module):
    def __init__(self, features, shift):
        super().__init__()
        self.weight, self.shift = nn.Parameter(torch.randn(features)), shift
    def forward(self, x):
        assert x.is_cuda
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 64),)](x, self.weight, out, self.shift, x.numel(), x.shape[1], BLOCK=64)
        return out
"""


MODEL_CHANGES = {
    "right": ({}, ""),
    "another bound": ({"tl.maximum(value, 0.0)": "tl.maximum(value, -0.05)"}, "wrong-result"),
    "no kernel": ({"        out = torch": "        return torch.relu(x * self.weight + self.shift)\n        out = torch"}, "never-launched"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.triton
@pytest.mark.parametrize("change", MODEL_CHANGES)
def test_kernelbench_through_the_gate(change: str, checker: Checker, tmp_path: Path) -> None:
    (tmp_path / "19_Linear.py").write_text(KERNELBENCH)
    path = tmp_path / "19_Linear_triton.py"
    path.write_text(MODEL_NEW)
    candidate, code = changed(MODEL_NEW, MODEL_CHANGES[change])
    verdict, _ = checker.file(path, candidate, "h100", FEW)
    assert set(code) <= set(codes(verdict))
    assert verdict.accepted == (not code)
    if verdict.accepted:
        assert verdict.checks[0]["reference_precision"] == "float64"


@pytest.mark.slow
@pytest.mark.triton
def test_a_candidate_cannot_reach_the_model_of_its_own_file(checker: Checker, tmp_path: Path) -> None:
    path, both = tmp_path / "k.py", KERNELBENCH + MODEL_NEW
    path.write_text(both)
    cheat, _ = changed(
        both, ({"        out = torch": "        return Model(32, 0.25)(x)\n        out = torch"}, "")
    )
    assert codes(checker.file(path, cheat, "h100", FEW)[0]) == ["kernel-raised"]
