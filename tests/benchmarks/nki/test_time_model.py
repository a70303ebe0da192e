"""The judging of the NKI time model: its arithmetic, and that it reads a checkout and says when there is none."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from accelopt_benchmarks.nki import time_model
from accelopt_benchmarks.nki import time_model as nki_time
from accelopt_benchmarks.nki.time_model import (
    PublishedComparison,
    leave_one_out,
    published,
    ranking,
    settings,
)
from accelopt_profiling.nki.time_model.hardware import hardware

KERNEL = """
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):
        nl.store(out[i * 128:i * 128 + 128, :], nl.exp(nl.load(x[i * 128:i * 128 + 128, :])))
    return out
"""
TASK = """
import numpy as np

def get_inputs():
    return [np.random.normal(loc=0, scale=1.0, size=(512, 512)).astype(np.float32)]

def transform_to_nki_inputs(inputs):
    return inputs
"""


def judged(name: str, published_us: float, us: float, **varied: float) -> PublishedComparison:
    return PublishedComparison(name, published_us, us, us / 2, us * 2, "memory", {"as is": us, **varied})


def test_the_one_left_out_has_no_say_in_its_constants() -> None:
    others = [judged(name, 100, 90, better=100) for name in "abc"]
    odd = judged("odd", 100, 100, better=150)
    errors, chosen = leave_one_out([*others, odd])
    assert chosen[-1] == "better"
    assert errors[-1] == pytest.approx(0.5)


def test_versions_are_told_one_by_one_and_each_beside_the_next() -> None:
    names = list(time_model.published_versions()["fused mamba"]["kernels"])[
        1:
    ]  # the first has fewer channels
    published = zip(names, (300, 200, 100, 99), strict=True)
    comparisons = [judged(name, us, us * 2 if n else us) for n, (name, us) in enumerate(published)]
    rows = time_model.versions("fused mamba", comparisons)
    outcomes = {row.what.partition("fused mamba, ")[2]: (round(row.value, 2), row.met) for row in rows}
    assert outcomes[names[0]] == (0.0, True)
    assert outcomes[f"{names[2]} (held out)"] == (100.0, False)
    assert outcomes[f"{names[0]} over {names[1]}"] == (0.75, False)
    assert outcomes[f"{names[1]} over {names[2]}"] == (2.0, True)
    assert f"{names[2]} over {names[3]}" not in outcomes


def test_misses_are_told_as_misses() -> None:
    rows = ranking([judged("a", 100, 320), judged("b", 200, 200), judged("c", 300, 310)])
    by_name = {row.what.rpartition(" ")[2]: row for row in rows}
    assert by_name["a"].met is False
    assert by_name["a"].value == pytest.approx(220)
    assert by_name["b"].met is True
    assert by_name["worst"].value == pytest.approx(3.2)
    assert by_name["worst"].detail == "a"
    assert by_name["correlation"].met is False


def test_each_calibrated_constant_is_tried_at_its_bounds() -> None:
    machine = hardware("trn1")
    tried = dict(settings(machine))
    assert tried.pop("as is") == machine
    assert len(tried) == 2 * len(nki_time.CALIBRATED)
    assert all(other != machine for other in tried.values())


@pytest.mark.slow
def test_the_model_is_judged_in_child_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = asyncio.run(nki_time.time_model([tmp_path]))
    assert len(rows) == 4 + 6 + 6 + 1  # products and their order, additions on trn1 and on trn2, no baselines
    assert [row.what.rpartition("addition, ")[2] for row in rows if row.met is False] == [
        "chunks 1 (held out)",
        "stream 2 (held out)",
    ], "known misses, both on trn1"
    assert rows[-1].met is None
    assert "zhang677/AccelOpt" in rows[-1].detail
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "kernel.py").write_text(KERNEL)
    case = {"cases": {"0": {"impls": [{"task": "task.py", "kernel": "kernel.py"}]}}}
    (tmp_path / "summary.json").write_text(json.dumps(dict.fromkeys(published("trn1"), case)))
    one = next(nki_time.baselines(tmp_path))
    comparison = nki_time.judge_baseline(*one)
    assert comparison.name == "swiglu"
    assert comparison.low_us < comparison.us < comparison.high_us
    assert comparison.varied["as is"] == pytest.approx(comparison.us)
    assert comparison.varied["gbps 272"] > comparison.us
