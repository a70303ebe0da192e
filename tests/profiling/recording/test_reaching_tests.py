"""Tests that reach a kernel file are told by their text."""

from __future__ import annotations

from pathlib import Path

from accelopt_profiling.recording.reaching_tests import reaching_tests

FILES = {
    "lib/ops/rms_norm.py": "def rms_norm_forward(x): ...\nclass RMSNormFunction: ...\n",
    "lib/layers.py": "from lib.ops.rms_norm import RMSNormFunction\nclass FusedNorm: ...\n",
    "tests/test_rms_norm.py": "from lib.ops.rms_norm import rms_norm_forward\ndef test_it(): ...\n",
    "tests/test_layers.py": "from lib.layers import FusedNorm\nclass TestLayers: ...\n",
    "tests/test_names.py": "import lib\ndef test_it(): lib.rms_norm_forward\n",
    "tests/test_other.py": "from lib.ops.softmax import softmax\ndef test_it(): ...\n",
    "benchmarks/bench_norm.py": "from lib.ops import rms_norm\nprint(rms_norm)\n",
    ".venv/tests/test_rms_norm.py": "from lib.ops.rms_norm import rms_norm_forward\n",
}


def test_the_closest_come_first(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    kernel = tmp_path / "lib/ops/rms_norm.py"
    tests = reaching_tests(kernel, tmp_path)
    assert [(t.path, t.why, t.command[0]) for t in tests] == [
        ("tests/test_rms_norm.py", "imports rms_norm", "pytest"),
        ("benchmarks/bench_norm.py", "imports rms_norm", "python"),
        ("tests/test_names.py", "names rms_norm_forward", "pytest"),
        ("tests/test_layers.py", "names FusedNorm of layers.py", "pytest"),
    ]
    assert reaching_tests(kernel, tmp_path, lambda: True) == []
