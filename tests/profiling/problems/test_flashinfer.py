"""Definitions and workloads of FlashInfer-Bench, checked by the gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.gate_checker import Checker, codes
from support.problem_files import DEFINITION, FEW, changed, loaded

from accelopt_profiling.problems.problem import ProblemError

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


CHANGES = {
    "right": ({}, ""),
    "another mean": ({"/ n + eps": "/ BLOCK + eps"}, "wrong-result"),
    "returns": ({
        "(x, w, eps, y):": "(x, w, eps):\n    import torch\n    y = torch.empty_like(x)",
        "BLOCK=128)\n": "BLOCK=128)\n    return y\n",
    }, ""),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.triton
@pytest.mark.parametrize("change", CHANGES)
def test_flashinfer_through_the_gate(change: str, checker: Checker, tmp_path: Path) -> None:
    candidate, code = changed(RUN, CHANGES[change])
    original = candidate if change == "returns" else RUN  # the call is the original's
    for name, text in {**flashinfer_files(), "k.py": original}.items():
        (tmp_path / name).write_text(text)
    verdict, receipt = checker.file(tmp_path / "k.py", candidate, "h100", FEW)
    assert set(code) <= set(codes(verdict))
    assert verdict.accepted == (not code)
    assert [d["shapes"][0] for d in receipt.body["inputs"]][:2] == [[24, 96], [5, 96]]
    assert verdict.checks[0]["outputs"][0]["dtype"] == "bfloat16"


@pytest.mark.parametrize(
    ("change", "workloads", "message"),
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
    change: dict[str, Any], workloads: Any, message: str, tmp_path: Path
) -> None:
    files = flashinfer_files({**DEFINITION, **change}, workloads)
    with pytest.raises(ProblemError) as raised:
        loaded(tmp_path, files, "flashinfer", "k.json", workloads="k.jsonl")
    assert message in raised.value.message
