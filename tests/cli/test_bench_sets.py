"""``bench kernelbench`` and ``bench flashinfer`` on small checkouts in the layouts of the real ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.bench_checkouts import MODEL, REFERENCE, flashinfer_checkout, kernelbench_checkout
from support.command import Command

from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known
from nkibench.journal import Journal
from nkibench.kernel_sets.tasks import flashinfer, kernelbench
from nkibench.metrics import SetResult, metrics


def test_kernels_are_found_for_the_tasks_of_kernelbench(tmp_path: Path) -> None:
    tasks = {task.name: task for task in kernelbench(*kernelbench_checkout(tmp_path))}
    assert list(tasks) == ["1_Add", "2_Sum", "10_Absent"]  # by number
    assert tasks["1_Add"].files == {"kernel.py": MODEL, "reference.py": REFERENCE}
    assert " - tl" in tasks["2_Sum"].files["kernel.py"]  # the first sample
    assert "has no kernel" in tasks["10_Absent"].fault
    with pytest.raises(ValueError, match="no level"):
        list(kernelbench(tmp_path / "none", tmp_path))


def test_triton_solutions_of_a_flashinfer_set_come_with_workloads_that_can_be_drawn(tmp_path: Path) -> None:
    tasks = {task.name: task for task in flashinfer(flashinfer_checkout(tmp_path), 2)}
    assert set(tasks) == {"add_triton", "add_outside"}
    drawn = [
        json.loads(line)["workload"]["uuid"]
        for line in tasks["add_triton"].files["workloads.jsonl"].splitlines()
    ]
    assert drawn == ["700", "300"]
    assert "no usable file" in tasks["add_outside"].fault
    with pytest.raises(ValueError, match="no definitions"):
        list(flashinfer(tmp_path / "solutions", 2))


def test_the_metrics_are_the_papers() -> None:
    def result(name: str, status: str, slow: float | None, fast: float | None) -> SetResult:
        latencies = [Latency(us, us, us, Known.MEASURED) if us else Latency() for us in (slow, fast)]
        return SetResult(name, "level1", status, latency=latencies[0], best=latencies[1])  # type: ignore[arg-type]

    rows = [
        result("a", "passed", 8.0, 2.0),
        result("b", "passed", 5.0, 5.0),
        result("c", "passed", None, None),
        result("d", "wrong", 9.0, 1.0),
    ]
    (found,) = metrics(rows)
    assert (found.tasks, found.timed, found.known) == (4, 2, "measured")
    assert (found.success, found.fast_1, found.faster) == (75.0, 50.0, 25.0)
    assert (found.mean_speedup, found.geometric_mean_speedup) == (2.5, pytest.approx(2.0))
    assert metrics([])[0].success is None


def test_a_journal_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl", SetResult)
    journal.add(SetResult("a", "level1", "passed", key="1"))
    with (tmp_path / "j.jsonl").open("a") as file:
        file.write('{"name": "b", "gro')
    again = Journal(tmp_path / "j.jsonl", SetResult)
    again.add(SetResult("c", "level1", "wrong", key="3"))
    found = Journal(tmp_path / "j.jsonl", SetResult)
    assert [(r.name if (r := found.get(key)) else None) for key in "123"] == ["a", None, "c"]


@pytest.mark.slow
@pytest.mark.triton
def test_kernelbench_from_the_checkout_to_the_metrics(accelopt: Command, home: Path) -> None:
    data, kernels = kernelbench_checkout(home)
    asked = ("bench", "kernelbench", "--data", data, "--kernels", kernels, "--json")
    ended = accelopt(*asked)
    assert ended.code == 1, ended.err
    results = {r["name"]: r for r in ended.object["results"]}
    assert {n: r["status"] for n, r in results.items()} == {
        "1_Add": "passed",
        "2_Sum": "wrong",
        "10_Absent": "absent",
    }
    assert results["1_Add"]["latency"]["known"] == "estimated"
    assert ended.object["metrics"][0]["success"] == pytest.approx(100 / 3)
    before = (home / "kernelbench-results" / "journal.jsonl").read_text()
    assert accelopt(*asked).object["results"] == ended.object["results"]
    assert (home / "kernelbench-results" / "journal.jsonl").read_text() == before  # nothing was run again


@pytest.mark.slow
@pytest.mark.triton
def test_flashinfer_from_the_data_set_to_an_optimized_kernel(accelopt: Command, home: Path) -> None:
    data = flashinfer_checkout(home / "set")
    ended = accelopt("bench", "flashinfer", "--data", data, "--workloads", "2", "--tasks", "triton",
                     "--optimize", "--no-model", "--budget", "2", "--json")  # fmt: skip
    assert ended.code == 0, ended.err
    (result,) = ended.object["results"]
    assert result["status"] == "passed"
    assert 1 <= result["tried"] <= 2
    assert ended.object["metrics"][0]["fast_1"] == 100.0
