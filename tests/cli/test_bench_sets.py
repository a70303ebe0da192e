"""``bench kernelbench`` and ``bench flashinfer`` on small checkouts in the layouts of the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.bench_checkouts import MODEL, REFERENCE, flashinfer_checkout, kernelbench_checkout
from support.command import Command

from accelopt_benchmarks.simulated.serving import Conversation, serving
from accelopt_benchmarks.simulated.team import Question
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known
from nkibench.journal import Journal
from nkibench.kernel_sets.first_kernel import module_in
from nkibench.kernel_sets.flashinfer_output import against_set, write_flashinfer
from nkibench.kernel_sets.tasks import flashinfer, kernelbench
from nkibench.metrics import SetResult, fast_p, metrics


def test_kernels_are_found_for_the_tasks_of_kernelbench(tmp_path: Path) -> None:
    tasks = {task.name: task for task in kernelbench(*kernelbench_checkout(tmp_path))}
    assert list(tasks) == ["1_Add", "2_Sum", "10_Absent"]  # by number
    assert tasks["1_Add"].files == {"kernel.py": MODEL, "reference.py": REFERENCE}
    assert " - tl" in tasks["2_Sum"].files["kernel.py"]  # the first sample
    assert "has no kernel" in tasks["10_Absent"].fault
    with pytest.raises(ValueError, match="no level"):
        list(kernelbench(tmp_path / "none", tmp_path))


def test_without_kernels_the_tasks_have_their_problem_alone(tmp_path: Path) -> None:
    data, _ = kernelbench_checkout(tmp_path)
    tasks = list(kernelbench(data))
    assert [(t.kernel, t.problem, list(t.files)) for t in tasks] == [
        ("", "reference.py", ["reference.py"])
    ] * 3


def test_the_largest_block_with_the_class_is_the_file() -> None:
    answer = f"Like this:\n```python\nimport torch\n```\nand\n```python\n{MODEL}```\nDone."
    assert module_in(answer) == MODEL.rstrip() + "\n"
    assert module_in("def ModelNew(): pass") is None
    assert module_in("```python\nclass ModelNew(:\n```") is None


@pytest.mark.slow
@pytest.mark.long
def test_a_model_writes_the_first_kernel_and_pytorch_is_what_it_is_compared_with(
    accelopt: Command, home: Path
) -> None:
    """The first file is wrong, the second right; then the search goes on from it, and a replay finds the same."""
    data, _ = kernelbench_checkout(home)

    def answering(question: Question, count: int) -> str:
        if "Write the file with" in question.user:
            return f"```python\n{MODEL.replace('mask) + tl', 'mask) - tl')}```"
        if "Write the whole file again" in question.user:
            assert "wrong-result" in question.user
            return f"```python\n{MODEL}```"
        return "I have no idea."

    conversation = Conversation("Said by a test.", "2026-11-22", "toy")
    base = (
        "bench",
        "kernelbench",
        "--data",
        data,
        "--tasks",
        "1_Add",
        "--optimize",
        "--json",
        "--budget",
        "4",
    )
    with serving(conversation.recording(answering), "toy") as url:
        model = ("--set", f"model.base_url={url}", "--set", "model.model=toy")
        ended = accelopt(*base, *model, "--sources", "model", "--out", home / "one")
    assert ended.code == 0, ended.err
    (result,) = ended.object["results"]
    assert (result["status"], result["attempts"]) == ("passed", 2)
    assert result["tokens"] > 0
    assert result["eager"]["known"] == result["compiled"]["known"] == "estimated"
    shares = {row["over"]: row["shares"] for row in ended.object["fast_p"]}
    assert shares["eager"]["0"] == 100.0
    assert set(shares["compiled"]) == {"0", "0.5", "0.8", "1", "1.5", "2"}
    file = home / "said.json"
    conversation.save(file)
    again = accelopt(*base, "--conversation", file, "--sources", "model", "--out", home / "two")
    assert again.code == 0, again.err
    assert again.object["results"][0]["attempts"] == 2


def test_fast_p_counts_right_kernels_that_are_faster_than_pytorch() -> None:
    def result(group: str, status: str, ours: float | None, torch_us: float | None) -> SetResult:
        eager = Latency(torch_us, torch_us, torch_us, Known.ESTIMATED) if torch_us else Latency()
        best = Latency(ours, ours, ours, Known.ESTIMATED) if ours else Latency()
        return SetResult("t", group, status, best=best, eager=eager, whole_us=ours)  # type: ignore[arg-type]

    rows = fast_p([
        result("level1", "passed", 10, 30), result("level1", "passed", 10, 9), result("level1", "wrong", 1, 9),
        result("level2", "passed", 10, None),
    ])  # fmt: skip
    assert [(r.group, r.over, r.tasks, r.timed) for r in rows] == [
        ("level1", "eager", 3, 2),
        ("all", "eager", 4, 2),
    ]
    assert rows[0].shares == pytest.approx(
        {"0": 66.67, "0.5": 66.67, "0.8": 66.67, "1": 33.33, "1.5": 33.33, "2": 33.33}, abs=0.01
    )
    assert rows[1].shares["0"] == 75.0
    assert rows[1].known == "estimated"


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
    (figures,) = metrics(rows)
    assert (figures.tasks, figures.timed, figures.known) == (4, 2, "measured")
    assert (figures.success, figures.fast_1, figures.faster) == (75.0, 50.0, 25.0)
    assert (figures.mean_speedup, figures.geometric_mean_speedup) == (2.5, pytest.approx(2.0))
    assert metrics([])[0].success is None


def test_a_journal_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl", SetResult)
    journal.add(SetResult("a", "level1", "passed", key="1"))
    with (tmp_path / "j.jsonl").open("a") as file:
        file.write('{"name": "b", "gro')
    again = Journal(tmp_path / "j.jsonl", SetResult)
    again.add(SetResult("c", "level1", "wrong", key="3"))
    reopened = Journal(tmp_path / "j.jsonl", SetResult)
    assert [(r.name if (r := reopened.get(key)) else None) for key in "123"] == ["a", None, "c"]


@pytest.mark.slow
@pytest.mark.triton
def test_kernelbench_from_the_checkout_to_the_metrics(accelopt: Command, home: Path) -> None:
    data, kernels = kernelbench_checkout(home)
    arguments = ("bench", "kernelbench", "--data", data, "--kernels", kernels, "--json")
    ended = accelopt(*arguments)
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
    assert accelopt(*arguments).object["results"] == ended.object["results"]
    assert (home / "kernelbench-results" / "journal.jsonl").read_text() == before  # nothing was run again


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.triton
def test_flashinfer_from_the_data_set_to_an_optimized_kernel(accelopt: Command, home: Path) -> None:
    """The first workload takes an input from a file; solutions and traces come out as they came in."""
    data = flashinfer_checkout(home / "set")
    (data / "workloads/add/add_n.jsonl").write_text(json.dumps(workload_with_tensors(data)) + "\n")
    ended = accelopt("bench", "flashinfer", "--data", data, "--workloads", "2", "--tasks", "triton",
                     "--optimize", "--no-model", "--budget", "2", "--json", "--out", home / "out")  # fmt: skip
    assert ended.code == 0, ended.err
    (result,) = ended.object["results"]
    assert result["status"] == "passed"
    assert 1 <= result["tried"] <= 2
    assert ended.object["metrics"][0]["fast_1"] == 100.0
    (against,) = ended.object["against_set"]
    assert (against["definition"], against["solutions"], against["fastest"]) == ("add_n", 1, "add_triton")
    (line, *_) = (home / "out/traces/add/add_n.jsonl").read_text().splitlines()
    trace = json.loads(line)
    assert (trace["solution"], trace["workload"]["uuid"]) == ("add_triton", "700")
    evaluation = trace["evaluation"]
    assert (evaluation["status"], evaluation["environment"]["hardware"]) == ("PASSED", "h100 (estimated)")
    assert set(evaluation["performance"]) == {"latency_ms", "reference_latency_ms", "speedup_factor"}
    assert evaluation["correctness"]["max_relative_error"] == 0.0


def workload_with_tensors(data: Path) -> dict[str, Any]:
    """A workload of 700 numbers, of which ``x`` lie in a safetensors file of the set."""
    held = json.dumps({"x": {"dtype": "F32", "shape": [700], "data_offsets": [0, 2800]}}).encode()
    blob = data / "blob/workloads/x.safetensors"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(len(held).to_bytes(8, "little") + held + bytes(2800))
    stored = {"type": "safetensors", "path": "blob/workloads/x.safetensors", "tensor_key": "x"}
    inputs = {"x": stored, "y": {"type": "random"}}
    return {"definition": "add_n", "workload": {"axes": {"n": 700}, "inputs": inputs, "uuid": "700"}}


def test_workloads_with_tensors_of_the_set_are_taken(tmp_path: Path) -> None:
    data = flashinfer_checkout(tmp_path)
    line = json.dumps(workload_with_tensors(data))
    pointer = json.dumps(workload_with_tensors(data / "other")).replace("x.safetensors", "pointer")
    outside = line.replace("blob/", "../blob/")
    (data / "blob/workloads/pointer").write_text("version https://git-lfs.github.com/spec/v1\n")
    (data / "workloads/add/add_n.jsonl").write_text("\n".join([pointer, outside, line]))
    tasks = {task.name: task for task in flashinfer(data, 3)}
    assert list(tasks["add_triton"].stored) == ["blob/workloads/x.safetensors"]
    assert tasks["add_triton"].files["workloads.jsonl"] == line + "\n"
    (data / "blob/workloads/x.safetensors").unlink()
    (gone,) = [task.fault for task in flashinfer(data, 3) if task.name == "add_triton"]
    assert "safetensors are not here" in gone


def test_a_found_version_is_a_solution_and_beats_the_set_or_does_not(tmp_path: Path) -> None:
    data = flashinfer_checkout(tmp_path / "set")
    evaluated = {"environment": {"hardware": "H100"}, "performance": {"latency_ms": 0.5}}
    trace = {"definition": "add_n", "solution": "cutlass", "evaluation": evaluated}
    (data / "traces").mkdir()
    (data / "traces/add_n.jsonl").write_text(json.dumps(trace) + "\nnonsense\n")
    tasks = [task for task in flashinfer(data, 3) if not task.fault]
    slow, fast = (Latency(us, us, us, Known.ESTIMATED) for us in (8.0, 4.0))
    result = SetResult(
        "add_triton", "add", "passed", latency=slow, best=fast, steps=("rule:a",), text="# faster\n",
        eager=Latency(12.0, 12.0, 12.0, Known.ESTIMATED), relative_error=float("nan"),
    )  # fmt: skip
    (row,) = against_set(data, tasks, [result])
    assert (row.fastest_us, row.best_us, row.speedup) == (8.0, 4.0, 2.0)
    assert (row.recorded_ms, row.recorded) == (0.5, "cutlass on H100")
    files = write_flashinfer(tmp_path / "out", tasks, [result], "h100")
    solution = json.loads(files[0].read_text())
    assert (solution["name"], solution["author"]) == ("add_triton_accelopt", "accelopt-lsp")
    assert solution["sources"] == [{"path": "main.py", "content": "# faster\n"}]
    lines = [json.loads(line) for line in files[1].read_text().splitlines()]
    assert [t["evaluation"]["performance"]["speedup_factor"] for t in lines] == [1.5, 3.0]
    assert lines[0]["evaluation"]["correctness"]["max_relative_error"] == "NaN"
