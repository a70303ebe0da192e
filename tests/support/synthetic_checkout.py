"""A small checkout of NKIBench, written by the test: AccelOpt's layout and contracts, at sizes that take no time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REFERENCE = """
import numpy as np

M = {m}
N = 512

def get_inputs():
    x = np.random.normal(loc=0, scale=1.0, size=(M, N)).astype(np.float32)
    return [x, 2.0]

def forward(x, factor):
    return {expected}

def transform_to_nki_inputs(inputs):
    return [np.reshape(inputs[0], (M // 128, 128, N)), inputs[1]]

def transform_nki_outputs(k_res, ref):
    if not isinstance(k_res, tuple):
        k_res = (k_res,)
    refs = ref if isinstance(ref, tuple) else (ref,)
    return [np.reshape(v, r.shape) for v, r in zip(k_res, refs)]
"""

KERNEL = """
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import neuronxcc.nki.isa as nisa
from neuronxcc.nki import trace
from neuronxcc.nki.language import par_dim


@nki.jit
def {name}(v1, v2):
  v3 = nl.ndarray((v1.shape[0], 128, 512), dtype=np.float32, buffer=nl.shared_hbm)
  for i0 in nl.affine_range(v1.shape[0]):
    v4 = nl.ndarray((nl.par_dim(128), 512), dtype=np.float32, buffer=nl.sbuf, name='v4')
    v4[nl.arange(128)[:, None], nl.arange(512)[None, :]] = nl.load(v1[i0, nl.arange(128)[:, None], nl.arange(512)[None, :]], dtype=np.float32)
    v5 = nl.multiply(v4, v2)
    nl.store(v3[i0, nl.arange(128)[:, None], nl.arange(512)[None, :]], value={value}, mask=None)
    ' end loop i0 '
  return v3
"""  # noqa: E501


def reference(m: int = 256, expected: str = "x * x.dtype.type(factor)") -> str:
    return REFERENCE.format(m=m, expected=expected)


def kernel(value: str = "v5", name: str = "kernel") -> str:
    return KERNEL.format(name=name, value=value)


def operator(name: str, m: int = 256, case_id: str = "2") -> dict[str, Any]:
    """An operator's entry in the summary."""
    impl = {
        "task": f"./reference/{name}_M{m}_N512_numpy_{case_id}.py",
        "kernel": f"./kernels/{name}_M{m}_N512_0.py",
    }
    cases = {case_id: {"values": {"N": 512, "M": m}, "impls": [impl]}}
    return {"seed": f"./seeds/{name}.yaml", "cases": cases}


def write_checkout(root: Path, names: tuple[str, ...] = ("scale", "other")) -> Path:
    """The folder NKIBench of a checkout in ``root``, with one case per operator."""
    folder = root / "NKIBench"
    for part in ("kernels", "reference", "seeds"):
        (folder / part).mkdir(parents=True)
    for name in names:
        (folder / f"reference/{name}_M256_N512_numpy_2.py").write_text(reference())
        (folder / f"kernels/{name}_M256_N512_0.py").write_text(kernel())
    (folder / "summary.json").write_text(json.dumps({name: operator(name) for name in names}, indent=4))
    return folder
