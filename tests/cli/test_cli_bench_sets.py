"""``bench kernelbench`` and ``bench flashinfer`` on small checkouts in the layouts of the real ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command

from accelopt_lsp.bench.kernel_sets import flashinfer, kernelbench
from accelopt_lsp.bench.set_metrics import Journal, SetResult, metrics
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y


def get_inputs():
    return [torch.randn(700), torch.randn(700)]


def get_init_inputs():
    return []
"""
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


"""
LAUNCH = """out = torch.empty_like(x)
add[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
return out
"""


def indented(text: str, depth: int) -> str:
    return "".join(f"{'    ' * depth}{line}\n" for line in text.splitlines())


MODEL = f"{KERNEL}class ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n{indented(LAUNCH, 2)}"
RUN = f"{KERNEL}def run(x, y):\n{indented(LAUNCH, 1)}"


def kernelbench_checkout(root: Path) -> tuple[Path, Path]:
    level, kernels = root / "set" / "KernelBench" / "level1", root / "kernels"
    level.mkdir(parents=True)
    (kernels / "level1").mkdir(parents=True)
    for name in ("1_Add", "2_Sum", "10_Absent"):
        (level / f"{name}.py").write_text(REFERENCE)
    (kernels / "level1" / "1_Add_triton.py").write_text(MODEL)
    (kernels / "level_1_problem_2_sample_3_kernel.py").write_text(MODEL)
    (kernels / "level_1_problem_2_sample_0_kernel.py").write_text(MODEL.replace("mask) + tl", "mask) - tl"))
    return root / "set", kernels


def flashinfer_checkout(root: Path) -> Path:
    definition = {
        "name": "add_n", "op_type": "add", "axes": {"n": {"type": "var"}},
        "inputs": {k: {"shape": ["n"], "dtype": "float32"} for k in ("x", "y")},
        "outputs": {"out": {"shape": ["n"], "dtype": "float32"}},
        "reference": "def run(x, y):\n    return x + y\n",
    }  # fmt: skip
    lines = [{"definition": "add_n", "workload": {"axes": {"n": n}, "inputs": {"x": {"type": k}}, "uuid": str(n)}}
             for n, k in ((100, "safetensors"), (700, "random"), (300, "random"), (900, "random"))]  # fmt: skip
    good = {
        "name": "add_triton", "definition": "add_n",
        "spec": {"language": "triton", "entry_point": "main.py::run", "destination_passing_style": False},
        "sources": [{"path": "main.py", "content": RUN}],
    }  # fmt: skip
    outside = {**good, "name": "add_outside", "sources": [{"path": "../main.py", "content": RUN}]}
    cuda = {**good, "name": "add_cuda", "spec": {"language": "cuda", "entry_point": "main.cu::run"}}
    texts = {
        "definitions/add/add_n.json": json.dumps(definition),
        "workloads/add/add_n.jsonl": "\n".join(map(json.dumps, lines)),
        **{f"solutions/{s['name']}.json": json.dumps(s) for s in (good, outside, cuda)},
        "solutions/broken.json": "{",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


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
    journal = Journal(tmp_path / "j.jsonl")
    journal.add(SetResult("a", "level1", "passed", key="1"))
    with (tmp_path / "j.jsonl").open("a") as file:
        file.write('{"name": "b", "gro')
    again = Journal(tmp_path / "j.jsonl")
    again.add(SetResult("c", "level1", "wrong", key="3"))
    found = Journal(tmp_path / "j.jsonl")
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
