"""Files that run themselves: what they call is recorded, and a candidate gets the same calls."""

# ruff: noqa: E501 - sources, one case a line

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from support.gate_checker import Checker, codes
from support.problem_files import FEW, NKI, changed, context_of, loaded

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.problems.call import perform
from accelopt_profiling.problems.discovery.script_detection import own_runs
from accelopt_profiling.problems.loading.own_calls import record_calls
from accelopt_profiling.problems.loading.script_run import run_functions
from accelopt_profiling.source_text import try_parse
from accelopt_profiling.step_context import StepFailedError
from accelopt_profiling.worker.usercode import load_module

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
    "an autograd function": "\nclass Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return double_in(x)\n    @staticmethod\n    def backward(ctx, dy):\n        return double_in(dy.contiguous())\n\ndouble_it = Double.apply\nif __name__ == '__main__':\n    double_it(torch.randn(100, device='cuda', requires_grad=True))\n    double_it(torch.randn(7, device='cuda'))\n",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.triton
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("way", RUNS)
def test_a_file_that_runs_itself_through_the_gate(
    way: str, right: bool, checker: Checker, tmp_path: Path
) -> None:
    text = SELFRUN + RUNS[way]
    if "double_in" in text:
        text = text.replace("def double(x)", "def double_in(x)")
    path = tmp_path / "k.py"
    path.write_text(text)
    if right:
        verdict, receipt = checker.file(path, text, "h100", FEW)
        assert verdict.accepted, verdict.reasons
        assert [d["shapes"] for d in receipt.body["inputs"]][:2] == [[[100]], [[7]]]
        assert verdict.checks[0]["reference_precision"] == "float32"
        return
    wrong, _ = changed(text, ({" * 2, mask": " * 2.01, mask"}, ""))
    expected = "kernel-raised" if "assert" in text else "wrong-result"  # the file's own check comes first
    assert codes(checker.file(path, wrong, "h100", FEW)[0])[0] == expected


#: The file's second check fails with the original too; its first one does not.
OWN_CHECKS = (
    "\nx = torch.arange(100, device='cuda')\nassert double(x)[1] == 2\nassert double(x[:7]).sum() == 0\n"
)


@pytest.mark.slow
@pytest.mark.triton
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("* 2", "+ tl.load(x + at, mask=at < n)", None),
        (" * 2", " * 2 + (at == 9)", "wrong-result"),
        (" * 2", " * 3", "kernel-raised"),
        ("assert double(x[:7])", "assert double(x)[3] == 5\nassert double(x[:7])", "kernel-raised"),
    ],
    ids=["right", "wrong", "fails another check", "adds a check"],
)
def test_a_candidate_may_fail_the_check_that_the_original_fails(
    old: str, new: str, expected: str | None, checker: Checker, tmp_path: Path
) -> None:
    text = SELFRUN + OWN_CHECKS
    path = tmp_path / "k.py"
    path.write_text(text)
    verdict, _ = checker.file(path, text.replace(old, new, 1), "h100", FEW)
    assert verdict.accepted == (expected is None), verdict.reasons
    assert expected in (None, codes(verdict)[0])


@pytest.mark.slow
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


def test_methods_of_unittest_are_tests_that_may_be_expected_to_fail() -> None:
    text = (
        "import unittest\nimport pytest\nimport neuronxcc.nki as nki\n@nki.jit\ndef k(a):\n    return a\n"
        "class T(unittest.TestCase):\n"
        "    def setUp(self):\n        self.n = 1\n"
        "    def test_a(self):\n        ran.append(k.__name__ * self.n)\n"
        "    @pytest.mark.xfail\n    def test_b(self):\n        self.assertEqual(k, 2)\n"
        "    @unittest.skip('never')\n    def test_c(self):\n        ran.append('c')\n"
    )
    runs = own_runs(try_parse(text).tree, find_kernels(text))
    assert runs.functions == ["T.test_a", "T.test_b", "T.test_c"]
    module = ModuleType("tests")
    module.__dict__["ran"] = []
    exec(text.replace("import neuronxcc.nki as nki\n@nki.jit\n", ""), module.__dict__)  # noqa: S102
    run_functions(module, runs.functions)
    assert module.__dict__["ran"] == ["k"]


@pytest.mark.parametrize(
    ("more", "recorded"),
    [
        ("", ["double"]),
        ("def again(x):\n    return double(x)\n", ["again"]),
        ("@@_double\ndef test_double(x):\n    _double(x)\ndef bench(x):\n    _double(x)\n", ["_double"]),
        ("@@_double\nclass Double:\n    def run(self, x):\n        return _double(x)\ndef twice(x):\n    return Double().run(x)\n", ["_double", "twice"]),
        ("@@_double\ndef no_arguments():\n    return _double(1)\n", ["_double"]),
    ],
    ids=["public", "the outer of two", "private", "through a class", "without arguments"],
)  # fmt: skip
def test_calls_of_functions_that_reach_a_kernel_are_recorded(more: str, recorded: list[str]) -> None:
    private = more.startswith("@@")
    text = SELFRUN.replace("def double(", "def _double(") if private else SELFRUN
    text += more.removeprefix("@@_double")
    assert own_runs(try_parse(text).tree, find_kernels(text)).recorded == recorded


def test_a_file_that_applies_its_autograd_function_itself(tmp_path: Path) -> None:
    text = """
import torch
import triton

@triton.jit
def kernel(x):
    pass

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, times):
        return x * 2 if times else launch(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None

def launch(x):
    kernel[(1,)](x)

def doubled(x):
    return Double.apply(x, 1)

doubled(torch.ones(2, requires_grad=True))
Double.apply(torch.ones(3), 1)
"""
    recorded = own_runs(try_parse(text).tree, find_kernels(text)).recorded
    assert "Double.apply" in recorded
    run = record_calls(context_of(tmp_path, {"k.py": text}), {"recorded": [*recorded, "doubled"]})
    assert [(name, len(x)) for name, x, *_ in run.calls] == [("doubled", 2), ("Double.apply", 3)]
    assert run.differentiated == {"doubled", "Double.apply"}
    assert "apply" not in vars(run.module.Double)


CLASSES = """
class Base:
    def apply(x):
        return ("base", x)
    apply = staticmethod(apply)

class Own(Base):
    @classmethod
    def apply(cls, x):
        return (cls.__name__, x)

class Plain(Own):
    pass

class Last(Plain):
    pass

results = [Base.apply(1), Own.apply(2), Plain.apply(3), Last.apply(4)]
"""


def test_an_apply_of_a_class_an_inherited_one_and_one_of_its_children(tmp_path: Path) -> None:
    names = ["Base.apply", "Own.apply", "Plain.apply"]
    run = record_calls(context_of(tmp_path, {"k.py": CLASSES}), {"recorded": names})
    expected = [("base", 1), ("Own", 2), ("Plain", 3), ("Last", 4)]
    assert run.module.results == expected
    assert run.calls == [["Base.apply", 1], ["Own.apply", 2], ["Plain.apply", 3]]
    module = run.module
    assert [
        c.apply(n) for n, c in enumerate((module.Base, module.Own, module.Plain, module.Last), 1)
    ] == expected
    assert ["apply" in vars(c) for c in (module.Base, module.Own, module.Plain, module.Last)] == [
        True, True, False, False,
    ]  # fmt: skip


def test_what_was_called_before_the_files_own_check_failed_is_recorded(tmp_path: Path) -> None:
    text = "def double(x):\n    return x + x\n\nassert double(3) == 6\nassert double(4.5) == 8\ndouble(7)\n"
    context = context_of(tmp_path, {"k.py": text})
    run = record_calls(context, {"recorded": ["double"]})
    assert (run.calls, run.differentiated) == ([["double", 3], ["double", 4.5]], set())
    assert run.module.double(2) == 4
    assert run.own_check == "1\nassert double(4.5) == 8"
    context = context_of(tmp_path, {"k.py": "assert not True\n" + text})
    with pytest.raises(AssertionError):
        record_calls(context, {"recorded": ["double"]})


@pytest.mark.parametrize(
    ("statement", "runs"),
    [
        ("if True:\n    def launch(x):\n        double(x)\n", False),
        ("if True:\n    def launch():\n        double(4)\n    launch()\n", True),
        ("if True:\n    measure(lambda: double(4))\n", True),
        ("class Double:\n    def __call__(self, x):\n        return double(x)\n", False),
    ],
)
def test_a_function_that_a_statement_defines_is_not_run_by_it(statement: str, runs: bool) -> None:
    text = f"{SELFRUN}\n{statement}"
    assert own_runs(try_parse(text).tree, find_kernels(text)).module == runs


def test_a_function_that_is_called_for_gradients_is_told(tmp_path: Path) -> None:
    text = "class Leaf:\n    requires_grad = True\n\ndef f(x):\n    return x\n\ndef g(x):\n    return 1\n\nf(Leaf())\ng(Leaf())\n"
    run = record_calls(context_of(tmp_path, {"k.py": text}), {"recorded": ["f", "g"]})
    assert [name for name, _ in run.calls] == ["f", "g"]
    assert run.differentiated == {"f"}


def test_what_a_recorded_function_has_is_reached_through_it(tmp_path: Path) -> None:
    names = ("run", "_run", "name", "_name", "function", "calls", "_recorder")
    text = (
        f"class Kernel:\n    {' = '.join(names)} = 'its own'\n    def __call__(self, x):\n        return x\n"
        f"f = Kernel()\nf(3)\nassert {{getattr(f, name) for name in {names}}} == {{'its own'}}\n"
    )
    run = record_calls(context_of(tmp_path, {"k.py": text}), {"recorded": ["f"]})
    assert (run.calls, run.own_check) == ([["f", 3]], "")


#: A file whose second check fails as it is, as one that compares with what the CPU computes in half precision.
CHECKED = "def f(n):\n    return n\n\ndef check(n):\n    assert f(n) < 3\n\ncheck(1)\ncheck(5)\nlast = f(2)\n"


@pytest.mark.parametrize(
    ("changes", "loads"),
    [
        ({}, True),
        ({"check(5)": "more = 1\ncheck(5)"}, True),
        ({"return n\n": "return n + 2\n"}, False),
        ({"check(5)": "assert f(5) < 3\ncheck(5)"}, False),
        ({"check(5)": "check(5 + 0)"}, False),
        ({"check(1)": "check(5)"}, False),
        ({"    assert": "    assert n == 1\n    assert"}, False),
        ({"check(5)": "raise ValueError"}, False),
        ({"check(5)": "check(2)", "last =": "last = 1 / 0"}, False),
    ],
)
def test_only_the_check_that_fails_with_the_original_too_ends_a_loaded_file(
    changes: dict[str, str], loads: bool, tmp_path: Path
) -> None:
    context = context_of(tmp_path / "original", {"k.py": CHECKED})
    check = record_calls(context, {"recorded": ["f"]}).own_check
    changed_text = CHECKED
    for old, new in changes.items():
        changed_text = changed_text.replace(old, new, 1)
    candidate = context_of(tmp_path / "candidate", {"k.py": changed_text})
    if loads:
        assert load_module(candidate, own_check=check).f(4) == 4
        return
    with pytest.raises(StepFailedError):
        load_module(candidate, own_check=check)


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("nki", "nki.simulate(kernel)(x)"), ("neuronxcc.nki", "nki.simulate_kernel(kernel, x)"),
        ("neuronxcc.nki", "nki.benchmark(warmup=1)(kernel)(x)"),
    ],
)  # fmt: skip
def test_a_kernel_that_the_file_simulates_or_times_is_recorded(
    package: str, call: str, tmp_path: Path
) -> None:
    text = f"""
import numpy as np
import {package} as nki
import {package}.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out

x = np.ones((128, 64), np.float32)
assert np.all({call} == x)
"""
    runs = own_runs(try_parse(text).tree, find_kernels(text))
    assert runs.module
    with emulated(sdk=False):
        recorded = record_calls(context_of(tmp_path, {"k.py": text}), {"recorded": runs.recorded})
    assert [recorded_call[0] for recorded_call in recorded.calls] == ["kernel"]
