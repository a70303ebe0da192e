"""Problems as files in a folder, found as the editor finds them and loaded as a child process loads them."""

# ruff: noqa: E501 - sources, one case a line

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accelopt_profiling.examination import examine
from accelopt_profiling.gate.request import CaseOptions
from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef
from accelopt_profiling.step_context import StepContext

FEW = CaseOptions(distributions=["original", "large"], shapes=1)
KERNEL = """import triton
import triton.language as tl

@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    tl.store(out, tl.load(x) + tl.load(y))

def add(x, y):
    add_kernel[(1,)](x, y, x, 1, BLOCK=1)
    return x
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


def found_in(
    folder: Path,
    files: Mapping[str, str],
    kernel: str,
    root: Path | None = None,
    configured: Mapping[str, str] | str | None = None,
    name: str = "k.py",
) -> ProblemLookup:
    for other, text in files.items():
        (folder / other).parent.mkdir(parents=True, exist_ok=True)
        (folder / other).write_text(text, encoding="utf-8")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(kernel, encoding="utf-8")
    return examine(path, kernel, project_root=root, problem=configured).problem


def context_of(
    folder: Path,
    files: dict[str, str],
    kernel: str = "k.py",
    emit: Callable[[Any], None] = lambda value: None,
) -> StepContext:
    for name, text in files.items():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / name).write_bytes(text.encode())
    return StepContext(folder, JobFiles(kernel, files), emit)


def loaded(
    folder: Path, files: dict[str, str], kind: str, path: str | None = "p.py", **options: Any
) -> Problem:
    return load_problem(context_of(folder, files), ProblemRef(kind, path, options=options), None)


def changed(text: str, change: tuple[Mapping[str, str], str]) -> tuple[str, list[str]]:
    """A candidate with each part replaced, which must be there, and the codes of the gate's first reason."""
    parts, code = change
    for part, other in parts.items():
        assert part in text
        text = text.replace(part, other)
    return text, [code] if code else []
