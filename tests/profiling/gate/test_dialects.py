"""The gate on real NKI and Triton kernels, run by their emulations."""

# ruff: noqa: E501 - tables, one case a line

from __future__ import annotations

from pathlib import Path

import pytest
from support.gate_checker import Checker, codes

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.request import CaseOptions

#: Each case is a whole check by the gate and takes more than a second.
pytestmark = pytest.mark.slow

NKI = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

shapes = [{"rows": 128, "columns": 512}]

def get_inputs(rows=256, columns=1024):
    return [np.random.normal(size=(rows, columns)).astype(np.float32)]

def reference(x):
    return x / (1 + np.exp(-x))

@nki.jit
def silu(x):
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(512)[None, :]
    for i in nl.affine_range(m // 128):
        for j in nl.affine_range(n // 512):
            tile = nl.load(x[i * 128 + p, j * 512 + f])
            power = nl.exp(nl.multiply(tile, -1.0))
            below = nl.add(power, 1.0)
            result = nl.divide(tile, below)
            nl.store(out[i * 128 + p, j * 512 + f], value=result)
    return out
"""

NKI_CANDIDATES = {
    "reciprocal": (("nl.divide(tile, below)", "nl.multiply(tile, nl.reciprocal(below))"), set()),
    "wrong sign": (("nl.multiply(tile, -1.0)", "nl.multiply(tile, -1.001)"), {"wrong-result"}),
    "forgets columns": (("affine_range(n // 512)", "affine_range(max(n // 512 - 1, 1))"), {"not-finite", "not-written"}),
    "host code": (("    m, n = x.shape\n", "    return np.asarray(x) * 0\n    m, n = x.shape\n"), {"kernel-raised"}),
}  # fmt: skip

TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, w_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    rms = tl.sqrt(tl.sum(x * x, axis=0) / columns + 1e-6)
    tl.store(out_ptr + row * columns + offsets, x / rms * w, mask=mask)

def scale(x, w):
    out = torch.empty_like(x)
    scale_kernel[(x.shape[0],)](x, w, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""

TRITON_PROBLEM = """
import torch
shapes = [{"rows": 3, "columns": 65}]

def get_inputs(rows=24, columns=128):
    return [torch.randn(rows, columns, device="cuda"), torch.randn(columns, device="cuda")]

def reference(x, w):
    return x / torch.sqrt((x * x).mean(dim=1, keepdim=True) + 1e-6) * w
"""

TRITON_CANDIDATES = {
    "reciprocal root": (("x / rms * w", "x * (1.0 / rms) * w"), set()),
    "no mask": (("mask = offsets < columns", "mask = offsets < BLOCK"), {"kernel-raised"}),
    "wrong mean": (("/ columns + 1e-6", "/ BLOCK + 1e-6"), {"wrong-result"}),
    "drops epsilon": (("/ columns + 1e-6", "/ columns"), {"wrong-result", "not-finite"}),
    "half precision": (("rms = tl.sqrt(", "x = x.to(tl.float16).to(tl.float32)\n    rms = tl.sqrt("), {"wrong-result"}),
    "PyTorch instead": (
        ("    out = torch.empty_like(x)\n", "    return x / torch.sqrt((x * x).mean(1, keepdim=True) + 1e-6) * w\n    out = x\n"),
        {"never-launched"},
    ),
    "one row less": (("[(x.shape[0],)]", "[(x.shape[0] - 1,)]"), {"not-written"}),
    "in place": (("out = torch.empty_like(x)", "out = x"), {"inputs-changed", "aliases-input"}),
    "another dtype": (("return out", "return out.double()"), {"wrong-dtype"}),
    "a tensor of its own kind": (
        ("return out", "return out.as_subclass(Lazy)\n\nclass Lazy(torch.Tensor):\n    pass"), {"wrong-type"},
    ),
    "cached output": (
        ("    scale_kernel[", "    if x.shape in CACHE:\n        return CACHE[x.shape].clone()\n    CACHE[x.shape] = out\n    scale_kernel["),
        {"never-launched", "wrong-result"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NKI_CANDIDATES)
def test_nki(checker: Checker, name: str, tmp_path: Path) -> None:
    (old, new), expected = NKI_CANDIDATES[name]
    assert old in NKI
    path = tmp_path / "silu.py"
    path.write_text(NKI)
    verdict, _ = checker.file(
        path, NKI.replace(old, new, 1), "trn1", CaseOptions(distributions=["original", "large"])
    )
    assert verdict.accepted is (not expected), verdict.reasons
    assert not expected or set(codes(verdict)) & expected, verdict.reasons
    if verdict.accepted:
        assert {tuple(check["launched"]) for check in verdict.checks} == {("silu",)}


@pytest.mark.triton
@pytest.mark.parametrize("name", TRITON_CANDIDATES)
def test_triton(checker: Checker, name: str, tmp_path: Path) -> None:
    (old, new), expected = TRITON_CANDIDATES[name]
    assert old in TRITON
    candidate = TRITON.replace(old, new, 1)
    path = tmp_path / "scale.py"
    path.write_text(TRITON)
    (tmp_path / "scale_problem.py").write_text(TRITON_PROBLEM)
    if "CACHE" in candidate:
        candidate = candidate.replace("\n@triton.jit", "\nCACHE = {}\n\n@triton.jit", 1)
    options = CaseOptions(distributions=["original", "small"], reading=False)
    verdict, _ = checker.file(path, candidate, "h100", options)
    assert verdict.accepted is (not expected), verdict.reasons
    assert not expected or set(codes(verdict)) & expected, verdict.reasons
    if verdict.accepted:
        assert all(check["complete"] and check["checked"] == 1.0 for check in verdict.checks)


@pytest.mark.triton
@pytest.mark.parametrize(
    ("change", "expected"),
    [(("x / rms * w", "x * (1.0 / rms) * w"), ""), (("out = x", "out = torch.empty_like(x)"), "not-written")],
)
def test_a_triton_kernel_in_place_stays_one(
    checker: Checker, change: tuple[str, str], expected: str, tmp_path: Path
) -> None:
    original = TRITON.replace(*TRITON_CANDIDATES["in place"][0])
    path = tmp_path / "scale.py"
    path.write_text(original)
    (tmp_path / "scale_problem.py").write_text(TRITON_PROBLEM)
    options = CaseOptions(distributions=["original", "small"], reading=False)
    verdict, _ = checker.file(path, original.replace(*change), "h100", options)
    assert codes(verdict) == ([expected] if expected else []), verdict.reasons


@pytest.mark.slow
@pytest.mark.triton
def test_a_large_triton_case_is_sampled_and_says_how_much_was_checked(
    checker: Checker, tmp_path: Path
) -> None:
    path = tmp_path / "scale.py"
    path.write_text(TRITON)
    (tmp_path / "scale_problem.py").write_text(TRITON_PROBLEM.replace("rows=24", "rows=4000"))
    options = CaseOptions(
        distributions=["original"], budget=GateBudget(interpret_work=2_000_000, large_bytes=1 << 16)
    )
    verdict, _ = checker.file(path, TRITON, "h100", options)
    assert verdict.accepted, verdict.reasons
    main, shape, *_ = verdict.checks
    assert codes(verdict) == ["partly-checked"]
    assert not main["complete"]
    assert 0 < main["checked"] < 0.05
    assert shape["complete"]
    assert shape["checked"] == 1.0
    wrong = TRITON.replace("x / rms * w", "x / rms * w * 1.001")
    verdict, _ = checker.file(path, wrong, "h100", options)
    assert codes(verdict)[0] == "wrong-result"
    assert verdict.checks[0]["outcome"] == "failed"
