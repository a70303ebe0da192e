"""nki.simulate returns what it takes: NumPy's arrays, or torch's tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.nki_current_source import TRN2
from support.nki_rule_cases import loaded

from accelopt_profiling.nki.install import emulated

TEXT = """
import nki
import nki.language as nl

def plain(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.load(x), 1.0))
    return out, out

kernel = nki.jit(plain)
"""


@pytest.mark.parametrize("name", ["plain", "kernel"])
def test_the_results_are_of_the_arguments_framework(name: str) -> None:
    with emulated("full", limits=TRN2, sdk=False):
        module = loaded(TEXT)
        simulate, kernel = module.nki.simulate, getattr(module, name)
        arrays = simulate(kernel)(np.ones((128, 8), np.float32))
        tensors = simulate(kernel)(torch.ones(128, 8, dtype=torch.bfloat16))
    assert all(isinstance(a, np.ndarray) and (a == 2).all() for a in arrays)
    assert all(t.dtype == torch.bfloat16 and bool((t == 2).all()) for t in tensors)
