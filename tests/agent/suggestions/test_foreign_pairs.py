from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accelopt_agent.suggestions.foreign_pairs import ForeignFormatError, read_foreign
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.quantity import Known


def target_of(kernel: Kernel) -> str:
    return "h100" if kernel.dialect == "triton" else "trn1"


SLOW = """import triton
import triton.language as tl


@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * 2, mask=at < n)


def run(x, y):
    double[(x.numel() // 64,)](x, y, x.numel(), BLOCK=64)
"""
FAST = SLOW.replace("64", "1024")


def _list(**changes: Any) -> list[dict[str, Any]]:
    item = {
        "slow_kernel": SLOW,
        "fast_kernel": FAST,
        "speedup": 1.5,
        "title": "**Larger blocks**",
        "summary": "...",
    }
    return [{**item, **changes}]


def test_an_experience_list_is_read_and_what_it_claims_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "experience.json"
    path.write_text(json.dumps(_list() + _list(fast_kernel=SLOW) + _list(slow_kernel="no Python (")))
    foreign = read_foreign(path, target_of)
    assert [reason.split(":")[0] for reason in foreign.left_out] == ["item 2", "item 3"]
    (pair,) = foreign.pairs
    assert (pair.kernel, pair.target, pair.imported, pair.example) == ("double", "h100", True, False)
    assert pair.summary == "Larger blocks (AccelOpt says 1.50x)"
    assert (pair.speedup, pair.fast.known) == (None, Known.NOT_MEASURED)


def test_a_renamed_kernel_is_the_same_one_and_no_optimization_is_no_pair(tmp_path: Path) -> None:
    path = tmp_path / "experience.json"
    renamed = FAST.replace("double", "double_wide")
    path.write_text(json.dumps(_list(fast_kernel=renamed) + _list(title="**No optimization found**")))
    foreign = read_foreign(path, target_of)
    (pair,) = foreign.pairs
    assert (pair.kernel, pair.fast_text, foreign.left_out) == ("double", FAST, ())


@pytest.mark.parametrize("content", ["{}", "[1]", "[{}]", "not json", "[" * 100_000])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ForeignFormatError):
        read_foreign(tmp_path / "x.json", target_of)


def _solution(name: str, text: str, language: str = "triton") -> dict[str, Any]:
    return {"name": name, "spec": {"language": language}, "sources": [{"path": "k.py", "content": text}]}


def _trace(solution: str, milliseconds: float, status: str = "PASSED", workload: str = "w") -> dict[str, Any]:
    evaluation = {
        "status": status,
        "environment": {"hardware": "B200"},
        "performance": {"latency_ms": milliseconds},
    }
    return {
        "definition": "double", "solution": solution, "workload": {"uuid": workload}, "evaluation": evaluation
    }  # fmt: skip


def test_traces_give_pairs_of_solutions_that_passed_on_the_same_workloads(tmp_path: Path) -> None:
    (tmp_path / "solutions").mkdir()
    (tmp_path / "traces").mkdir()
    solutions = {
        "slow": SLOW,
        "fast": FAST,
        "wrong": SLOW.replace("64", "32"),
        "alone": SLOW.replace("64", "16"),
    }
    for name, text in solutions.items():
        (tmp_path / "solutions" / f"{name}.json").write_text(json.dumps(_solution(name, text)))
    (tmp_path / "solutions" / "cuda.json").write_text(json.dumps(_solution("cuda", "int main", "cuda")))
    traces = [
        _trace("slow", 3.0),
        _trace("fast", 1.5),
        _trace("wrong", 0.1, "INCORRECT_NUMERICAL"),
        _trace("alone", 0.5, workload="other"),
        _trace("cuda", 0.1),
        {"definition": "double", "workload": {}},
    ]
    (tmp_path / "traces" / "t.jsonl").write_text("\n".join(map(json.dumps, traces)))
    foreign = read_foreign(tmp_path, target_of)
    assert [(p.slow_text, p.fast_text) for p in foreign.pairs] == [(SLOW, FAST)]
    assert "traces on B200 say 2.00x" in foreign.pairs[0].summary
    (tmp_path / "traces" / "t.jsonl").write_text("")
    with pytest.raises(ForeignFormatError):
        read_foreign(tmp_path, target_of)
