"""Without Triton and PyTorch, which NKI does not need, every step of an NKI kernel can be imported."""

from __future__ import annotations

import subprocess
import sys

IMPORTS = """
import sys
sys.modules["triton"] = sys.modules["torch"] = None
from accelopt_profiling.gate.steps.table import STEPS
from accelopt_profiling.worker.steps import find_step
import accelopt_profiling.nki.profile
for name, (function, kind) in STEPS.items():
    print(name)
for name in ("profile", "nki.infer", "nki.facts", "nki.compare"):
    try:
        find_step(name, {})
    except Exception as error:
        assert "do not fit" in str(error.error.message), error
"""


def test_the_steps_of_an_nki_kernel_need_no_triton() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "gate.run" in done.stdout
