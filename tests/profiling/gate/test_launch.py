"""Whether the target can launch a candidate is asked of what it launches for the problem's own values."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from support.gate_checker import Checker, codes
from support.nki_kernels import sums_in_banks

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.request import CaseOptions
from accelopt_profiling.gate.steps import launch
from accelopt_profiling.jobs import StepError
from accelopt_profiling.step_context import StepFailedError
from accelopt_profiling.targets import load_gpu
from accelopt_profiling.triton.compilation.compiled import CompiledFacts

#: Host code between two launches that looks at what the first one left.
LOOKS = {
    "asserts": "assert {any}(y != 0)\n    return {second}",
    "branches": "return {second} if {any}(y != 0) else y",
}
#: Ways to ask whether this is a device, which has to be answered as where the candidate was judged.
ASKS = ["torch.cuda.memory_allocated() > 0", "type(triton.runtime.driver.active).__name__ == 'CudaDriver'"]
NKI = """
def run(a):
    y = kernel.first(a)
    HERE

entry = "run"
"""
TRITON = """
import torch, triton, triton.language as tl

@triton.jit
def double(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, at < n) * 2, at < n)

def call(x, warps):
    out = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), 256, num_warps=warps)
    return out

def run(x):
    y = call(x, 4)
    HERE

def get_inputs():
    return [torch.randn(1024, device="cuda")]

def reference(x):
    return x * 4

entry = "run"
"""


@pytest.mark.slow
@pytest.mark.parametrize("host", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("dialect", ["nki", pytest.param("triton", marks=pytest.mark.triton)])
def test_a_launch_that_follows_from_values_is_seen(
    checker: Checker, dialect: str, host: str, tmp_path: Path
) -> None:
    nki = dialect == "nki"
    host = host.format(any="np.any" if nki else "torch.any", second="kernel(y)" if nki else "call(y, 64)")
    first = sums_in_banks(2).replace("kernel", "first").partition("def get_inputs")[0]
    both = first + sums_in_banks(16).partition("np\n")[2] + NKI.replace("kernel.first", "first")
    text = both.replace("a[:, 0:128].T @ a", "(b := a[:, 0:128].T @ a)[:, 0:128].T @ b") if nki else TRITON
    path = tmp_path / "k.py"
    path.write_text(text.replace("HERE", host))
    verdict, _ = checker.file(path, path.read_text(), "trn2" if nki else "h100")
    assert codes(verdict) == ["capacity"], verdict.reasons
    assert verdict.launchable.status == "no"


@pytest.mark.slow
@pytest.mark.triton
@pytest.mark.parametrize("asks", ASKS)
def test_a_candidate_cannot_tell_this_run_from_others(checker: Checker, asks: str, tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(TRITON.replace("HERE", f"return call(y, 64 if {asks} else 4)"))
    options = CaseOptions(["original"], reading=False)
    verdict, _ = checker.file(path, path.read_text(), "h100", options)
    assert codes(verdict) == ["capacity"], verdict.reasons


@pytest.mark.slow
@pytest.mark.parametrize(("target", "accepted"), [("trn3", True), ("trn2", False)])
def test_a_candidate_runs_on_the_target_that_was_asked_for(
    checker: Checker, target: str, accepted: bool, tmp_path: Path
) -> None:
    text = sums_in_banks(1, "nisa.exponential(x, x)").replace(
        "tensor_copy(x, bank)", "tensor_tensor(x, x, x, nl.add)"
    )
    path = tmp_path / "k.py"
    path.write_text(text.replace("return a[:, 0:128].T @ a", "return 2 * np.exp(a)") + "\ntolerance = 1e-3\n")
    verdict, _ = checker.file(path, path.read_text(), target)
    assert verdict.accepted is accepted, verdict.reasons


def execution(kind: int) -> SimpleNamespace:
    captured_launch = SimpleNamespace(
        line=3, name="k", fn=None, constants={"B": kind}, signature={}, attrs={}, options={}
    )
    return SimpleNamespace(launch=captured_launch, tuning=False)


@pytest.mark.triton
@pytest.mark.parametrize(
    ("kinds", "ended", "status", "detail"),
    [
        (GateBudget().compiled, "", "yes", ""),
        (GateBudget().compiled + 1, "", "not checked", "only 16 of its 17 kinds of launches were compiled"),
        (1, "No.", "not checked", "its call did not come to its end there (No)"),
        (0, "", "not checked", "it launched nothing where it was compiled"),
    ],
)
def test_what_was_not_looked_at_is_not_said_to_fit(
    kinds: int, ended: str, status: str, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accelopt_profiling.triton.compilation import compile as compilation

    monkeypatch.setattr(compilation, "compile_launch", lambda *_: CompiledFacts("h100", "sm_90"))
    failed = StepFailedError(StepError("user-error", ended)) if ended else None
    answer = launch._compiled(
        [execution(n) for n in range(kinds)], load_gpu("h100"), GateBudget().compiled, failed
    )
    assert (answer.launchable.status, answer.launchable.detail) == (status, detail)
