"""The emulator's time next to the reference's is measured in a process of its own, task by task."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_benchmarks.nki.emulator_speed import main, measure_all, row, tasks

KERNEL = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range({loops}):
        nl.store(out[128 * i:128 * i + 128, :], nl.multiply(nl.load(x[128 * i:128 * i + 128, :]), 2.0))
    return out
"""
REFERENCE = """\
import numpy as np
def get_inputs(): return [np.random.normal(size=(512, 256)).astype(np.float32)]
def forward(x): return x * 2
def transform_to_nki_inputs(inputs): return inputs
def transform_nki_outputs(result, expected): return [result]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("kernels", "reference"):
        (tmp_path / name).mkdir()
    (tmp_path / "kernels" / "twice_M512_0.py").write_text(KERNEL.format(loops=4))
    (tmp_path / "reference" / "twice_M512_numpy_1.py").write_text(REFERENCE)
    return tmp_path


def test_a_task_is_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [name for name, _, _ in tasks(folder)] == ["twice_M512"]
    (speed,) = measure_all(folder)
    assert (speed.task, speed.instructions, speed.error) == ("twice_M512", 12, 0.0)
    assert min(speed.trace, speed.emulator, speed.reference, speed.peak_bytes) > 0
    assert row(speed).startswith("| twice_M512 | 12 | 0e+00 |")
    assert list(measure_all(folder, ["other"])) == []
    assert main([str(folder / "nothing")]) == 2
    assert "NKIBENCH_DIR" in capsys.readouterr().err


def test_a_task_that_does_not_run_says_why(folder: Path) -> None:
    (folder / "kernels" / "twice_M512_0.py").write_text(KERNEL.format(loops=5))
    with pytest.raises(RuntimeError, match=r"(?s)twice_M512: .*leaves dimension 0 of size 512"):
        list(measure_all(folder))
