"""A run over a checkout: what is wrong with one leaves the others, and what is known is not found out again."""

import asyncio

import pytest
from support.synthetic_checkout import kernel, reference, write_checkout
from support.task_results import result
from support.worker_jobs import local_host

from accelopt_agent.request import Budget
from nkibench.code import cost_hash, toolchain_hash, verdict_hash
from nkibench.dataset import read_dataset
from nkibench.journal import Journal
from nkibench.result import TaskResult
from nkibench.run import BenchmarkPlan, Working, key_of, run
from nkibench.searching import Searching


def told(cases, plan, journal=None):
    async def everything():
        async with local_host() as host:
            return [event async for event in run(host, cases, plan, journal)]

    return asyncio.run(everything())


def results_of(events_told):
    return [event for event in events_told if isinstance(event, TaskResult)]


@pytest.mark.slow
def test_a_run_goes_on_after_every_kind_of_fault_and_is_taken_up_again(tmp_path):
    folder = write_checkout(tmp_path, ("scale", "silu", "wrong", "raises", "rank", "missing"))
    (folder / "kernels/wrong_M256_N512_0.py").write_text(kernel(value="v4"))
    (folder / "kernels/raises_M256_N512_0.py").write_text(kernel(value="nl.unknown(v5)"))
    (folder / "reference/rank_M256_N512_numpy_2.py").write_text(reference(expected="(x * 2)[:128]"))
    (folder / "kernels/missing_M256_N512_0.py").unlink()
    cases = read_dataset(folder)
    journal = tmp_path / "journal.jsonl"
    results = {
        r.task: r
        for r in results_of(told(cases, BenchmarkPlan("trn1", jobs=2), Journal(journal, TaskResult)))
    }
    assert {name: r.status for name, r in results.items()} == {
        "missing": "failed", "scale": "passed", "silu": "passed", "wrong": "wrong", "raises": "failed", "rank": "wrong",
    }  # fmt: skip
    assert "does not exist" in results["missing"].detail
    assert "unknown" in results["raises"].detail
    assert "line 18" in results["raises"].detail
    assert results["scale"].error < 1e-6
    assert results["scale"].peak_us is None  # nothing is published of an operator of that name
    assert results["silu"].percent == pytest.approx(
        100 * results["silu"].peak_us / results["silu"].latency.us
    )

    with journal.open("a") as file:
        file.write('{"task": "cut o')
    again = told(cases, BenchmarkPlan("trn1"), Journal(journal, TaskResult))
    assert {event.task for event in again if isinstance(event, Working)} == {
        "raises"
    }  # what failed is tried again
    second = {r.task: r for r in results_of(again)}
    assert all(second[name] == results[name] for name in ("missing", "scale", "silu", "wrong", "rank"))
    (folder / "kernels/silu_M256_N512_0.py").write_text(kernel() + "\n# changed\n")
    changed = told(cases, BenchmarkPlan("trn1"), Journal(journal, TaskResult))
    assert {event.task for event in changed if isinstance(event, Working)} == {"raises", "silu"}


#: Kernels that cannot be run: the value that is stored, and words of the finding. All on line 18 of the kernel file.
UNFIT = {
    "removed": ("nl.tensor_copy_dynamic(v5)", "tensor_copy_dynamic"),
    "shapes": ("nl.add(v5, nl.zeros((128, 64), dtype=nl.float32, buffer=nl.sbuf))", "64"),
    "partitions": ("nl.zeros((256, 512), dtype=nl.float32, buffer=nl.sbuf)", "128"),
    "psum": ("nl.zeros((128, 8192), dtype=nl.float32, buffer=nl.psum)", "PSUM"),
    "branch": ("v5 if v5 > 0 else v4", "depend on data"),
    "range": ("nl.load(v1[99, nl.arange(128)[:, None], nl.arange(512)[None, :]])", "99"),
}


@pytest.mark.slow
def test_kernels_that_cannot_be_run_are_named_with_their_line_and_the_rest_goes_on(tmp_path):
    folder = write_checkout(tmp_path, (*UNFIT, "scale"))
    for name, (value, _) in UNFIT.items():
        (folder / f"kernels/{name}_M256_N512_0.py").write_text(kernel(value=value))
    results = {r.task: r for r in results_of(told(read_dataset(folder), BenchmarkPlan("trn1", jobs=2)))}
    assert results.pop("scale").status == "passed"
    for name, result_found in results.items():
        assert result_found.status != "passed", name
        assert UNFIT[name][1] in result_found.detail, (name, result_found.detail)
        assert "18" in result_found.detail, (name, result_found.detail)


@pytest.mark.slow
def test_a_search_that_fails_unexpectedly_ends_the_run_instead_of_waiting_for_ever(tmp_path):
    cases = read_dataset(write_checkout(tmp_path, ("silu",)))
    plan = BenchmarkPlan("trn1", searching=Searching(Budget(), lambda request, host: 1 / 0))
    journal = Journal(tmp_path / "journal.jsonl", TaskResult)
    case = cases.ready[0]
    journal.add(result(case=case.case_name, key=key_of(case, plan)))
    with pytest.raises(ZeroDivisionError):
        told(cases, plan, journal)


@pytest.mark.slow
def test_another_gate_asks_for_verdicts_and_not_for_costs(tmp_path, monkeypatch):
    cases = read_dataset(write_checkout(tmp_path, ("scale",)))
    journal = Journal(tmp_path / "journal.jsonl", TaskResult)
    (first,) = results_of(told(cases, BenchmarkPlan("trn1"), journal))
    monkeypatch.setattr("nkibench.run.verdict_hash", lambda: "another gate")
    monkeypatch.setattr("nkibench.measuring.cost", None)
    (again,) = results_of(told(cases, BenchmarkPlan("trn1"), journal))
    assert (again.gate, again.latency, again.status) == ("another gate", first.latency, "passed")
    assert again.receipt != first.receipt
    assert [e for e in told(cases, BenchmarkPlan("trn1"), journal) if isinstance(e, Working)] == []


def test_a_cost_depends_on_other_code_than_a_verdict():
    assert len({cost_hash(), verdict_hash(), toolchain_hash()}) == 3


def test_a_journal_keeps_results_whatever_cut_it_off(tmp_path):
    path = tmp_path / "journal.jsonl"
    Journal(path, TaskResult).add(result())
    with path.open("ab") as file:
        file.write(b'{"task": "cut \xff')
    journal = Journal(path, TaskResult)
    assert journal.get("silu") == result()
    journal.add(result("lora"))
    assert Journal(path, TaskResult).get("lora") == result("lora")
    assert Journal(path, TaskResult).get("absent") is None
