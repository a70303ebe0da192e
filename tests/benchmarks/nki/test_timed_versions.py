"""Versions against a device: how pairs are counted, and that checkouts are found or asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from accelopt_benchmarks.nki.commands import nki
from accelopt_benchmarks.nki.timed_versions import Score, TimedVersion, rows


def version(name: str, measured_us: float, us: float, low: float = 0.8, high: float = 1.25) -> TimedVersion:
    return TimedVersion(name, measured_us, us, us * low, us * high)


def test_pairs_are_counted_by_what_is_called_and_what_was_measured() -> None:
    score = Score()
    score.add([version("slow", 200, 210), version("fast", 100, 100), version("alike", 201, 205)], "trn2")
    assert (score.calls, score.right, score.wrong, score.gains) == (2, 2, 0, 2)
    assert (score.pairs, score.ordered, score.inside) == (2, 2, 3)
    score = Score()
    score.add([version("called slow", 100, 150), version("called fast", 120, 100)], "trn2")
    assert (score.calls, score.right, score.wrong, score.pairs, score.ordered) == (1, 0, 1, 1, 0)


def test_a_version_that_one_scenario_makes_slower_is_not_called_faster() -> None:
    """At half TensorE's clock it may be at full: then it is as fast as the other."""
    score = Score()
    score.add([version("half clock", 100, 200, low=0.39), version("full clock", 100, 100)], "trn2")
    assert score.calls == 0


def test_the_goals_are_judged_over_all_tasks() -> None:
    results = {
        "a": [version("x", 100, 100), version("y", 300, 300)],
        "b": [version("x", 100, 300), version("y", 300, 100)],
    }
    table = {row.what: row for row in rows(results, "trn2")}
    assert table["called faster, and are"].value == 50
    assert table["called faster, and are slower"].value == 50
    assert table["favourite within 10 % of the best"].met is False
    assert table["measured inside of the interval"].value == 50


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    found = CliRunner().invoke(nki, ["versions", "--data", str(tmp_path)])
    assert found.exit_code == 2
    assert "NKIBench/summary.json is in none of" in found.output
    (tmp_path / "NKIBench").mkdir()
    case = {"cases": {"1": {"impls": [{"task": "task.py"}]}}}
    tasks = ["silu", "gqa_full", "bmm", "lora", "mamba", "matmul_add_rmsnorm", "rmsnorm_matmul"]
    (tmp_path / "NKIBench" / "summary.json").write_text(json.dumps(dict.fromkeys(tasks, case)))
    found = CliRunner().invoke(nki, ["versions", "--data", str(tmp_path)])
    assert "workspaces/bmm/runs/" in found.output


@pytest.mark.parametrize("task", ["silu"])
def test_versions_of_checkouts_are_traced_and_estimated(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accelopt_benchmarks.nki import timed_versions as benchmark

    kernel = tmp_path / "workspaces" / task / "runs" / "one.py"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(
        "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n\n@nki.jit\ndef kernel(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nl.store(out, nl.exp(nl.load(x)))\n    return out\n"
    )
    home = tmp_path / "NKIBench"
    home.mkdir()
    (home / "task.py").write_text(
        "import numpy as np\n\ndef get_inputs():\n    return [np.zeros((128, 512), np.float32)]\n\n"
        "def transform_to_nki_inputs(inputs):\n    return inputs\n"
    )
    (home / "summary.json").write_text(json.dumps({task: {"cases": {"1": {"impls": [{"task": "task.py"}]}}}}))
    facts = {"target": "trn2", "wrong": [], "tasks": {task: {f"workspaces/{task}/runs/one.py": 20.0}}}
    (job,) = benchmark._jobs(facts, [tmp_path])
    found = benchmark._estimated(job)
    assert found.name == "one"
    assert found.low_us < found.us < found.high_us
