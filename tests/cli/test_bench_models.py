"""Benchmarks with a team: who speaks, what is left out, the papers' metrics, and recorded conversations.

The conversations in ``support/conversations/`` are the simulated team's words through the real client, not a model's.
After a change of what is asked, record them again with ``RECORD_CONVERSATIONS=1 pytest -m slow`` on this file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.bench_checkouts import flashinfer_checkout, kernelbench_checkout, nkibench_checkout
from support.command import Command

from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.model.team import same_for_all
from accelopt_agent.request import SearchPlan
from accelopt_benchmarks.search.ablations import ABLATIONS, variants
from accelopt_benchmarks.search.comparators import REFLEXION, SAMPLING
from accelopt_lsp.cli.model_source import search_variants
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known
from nkibench.metrics import SetResult, metrics, of_nkibench
from nkibench.result import Best, TaskResult
from nkibench.searching import SearchVariant

CONVERSATIONS = Path(__file__).parents[1] / "support" / "conversations"


def latency(us: float) -> Latency:
    return Latency(us, us, us, Known.ESTIMATED)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--model", "m", "--no-model"), "Give one of --model"),
        (("--simulate", "1", "--conversation", "kept.json"), "Give one of --model"),
        (("--record", "said.json"), "--record keeps what --simulate says"),
        (("--conversation", "kept.json"), "kept.json is no recorded conversation"),
        (("--model", "m"), "no model.base_url"),
    ],
)
def test_who_speaks_is_said_once(accelopt: Command, home: Path, options: tuple[str, ...], says: str) -> None:
    (home / "kept.json").write_text("{}")
    data, kernels = kernelbench_checkout(home)
    ended = accelopt("bench", "kernelbench", "--data", data, "--kernels", kernels, "--optimize", *options)
    assert (ended.code, says in ended.err) == (2, True), ended.err
    assert accelopt("bench", "nkibench", "--tasks", "silu", "--optimize", *options).code == 2


@pytest.mark.parametrize(
    "command",
    [
        ("bench", "nkibench", "--tasks", "silu", "--preset", "accelopt"),
        ("optimize", "k.py", "--sources", "model"),
    ],
)
def test_somebody_has_to_propose(accelopt: Command, home: Path, command: tuple[str, ...]) -> None:
    (home / "k.py").write_text((Path(__file__).parents[2] / "examples/nki_silu.py").read_text("utf-8"))
    ended = accelopt(*command)
    assert (ended.code, "Only a model may propose" in ended.err) == (2, True), ended.err


def test_an_ablation_leaves_out_what_it_says() -> None:
    plan = SearchPlan(options={"repairs": 3})
    all_variants = variants((), True, plan)
    plans = {variant.name: variant.plan for variant in all_variants}
    assert {name: sorted(p.sources) for name, p in plans.items()} == {
        "everything": ["memory", "model", "rules"],
        "search only": ["memory", "rules"],
        "team only": ["model"],
        "no memory": ["model", "rules"],
        "one agent": ["memory", "model", "rules"],
        "sampling": ["model"],
    }
    strategies = ["hybrid", "hybrid", REFLEXION, "hybrid", "hybrid", SAMPLING]
    assert [p.strategy for p in plans.values()] == strategies
    assert [p.experience for p in plans.values()] == ["ours", "ours", "none", "none", "ours", "none"]
    assert plans["team only"].options == {}  # which are another strategy's
    assert plans["no memory"].options == {"repairs": 3}
    assert len({f"{v.plan} {v.alone}" for v in all_variants}) == len(ABLATIONS)
    assert search_variants((), everything=True, plan=plan) == all_variants
    assert search_variants((), everything=False, plan=plan) == (SearchVariant(plan),)
    assert search_variants(("no memory",), everything=False, plan=plan) == (all_variants[3],)
    papers = SearchPlan("tree", frozenset({"model"}))
    assert "search only" not in [v.name for v in variants((), True, papers)]
    team = same_for_all(ModelSettings("http://localhost/v1", "m"))
    assert len({own_team.setup for v in all_variants if (own_team := v.team_of(team))}) == 2
    assert [v.name for v in all_variants if (own_team := v.team_of(team)) and own_team.alone] == [
        "one agent",
        "sampling",
    ]


def test_the_metrics_are_per_search_and_tell_peaks_and_costs() -> None:
    def result(us: float, best: float, money: float | None, search: str) -> SetResult:
        return SetResult(
            "t", "level1", "passed", latency=latency(us), best=latency(best), tried=4, money=money, tokens=100,
            percent=20.0, best_percent=20.0 * us / best, search=search,
        )  # fmt: skip

    rows = metrics([result(8, 2, 0.5, "a"), result(9, 9, None, "a"), result(4, 2, None, "b")])
    assert [(r.search, r.tasks) for r in rows] == [("a", 2), ("b", 1)]
    assert (rows[0].percent_of_peak_before, rows[0].percent_of_peak_after) == (
        pytest.approx(20),
        pytest.approx(40),
    )
    assert (rows[0].candidates_per_task, rows[0].tokens_per_task, rows[0].money_per_task) == (4, 100, 0.25)
    assert (rows[1].money_per_task, rows[1].mean_speedup) == (None, 2.0)
    task = TaskResult("silu", "c", "trn1", "beta1", "k", "passed", latency=latency(100), peak_us=40.0,
                      best=Best(latency(50), ("rule:a",), 7, tokens=30, money=0.1))  # fmt: skip
    (row,) = metrics([of_nkibench(task, "everything")])
    assert (row.percent_of_peak_before, row.percent_of_peak_after) == (pytest.approx(40), pytest.approx(80))
    assert (row.group, row.candidates_per_task, row.tokens_per_task, row.money_per_task) == (
        "nkibench",
        7,
        30,
        0.1,
    )
    assert metrics([of_nkibench(TaskResult("x", "c", "trn1", "beta1", "k", "wrong"))])[0].success == 0.0


def played(accelopt: Command, name: str, *arguments: object) -> Any:
    """The answer of a benchmark in which a recorded conversation is played, or is recorded anew."""
    file = CONVERSATIONS / f"{name}.json"
    (Path.cwd() / "user.toml").write_text("[model]\nprice_in = 1.0\nprice_out = 4.0\n")
    speaks = (
        ("--simulate", "7", "--record", file)
        if "RECORD_CONVERSATIONS" in os.environ
        else ("--conversation", file)
    )
    ended = accelopt("bench", *arguments, *speaks, "--json")
    assert ended.code == 0, ended.err
    if "--conversation" in speaks:
        assert "not by a model" in ended.err
    assert "record it again" not in ended.err
    conversation = json.loads(file.read_text())
    assert "not by a model" in conversation["source"]
    assert {turn["role"] for turn in conversation["turns"]} >= {"planner", "coder"}
    return ended.object


@pytest.mark.slow
@pytest.mark.long
def test_nkibench_with_a_recorded_conversation_and_with_parts_left_out(accelopt: Command, home: Path) -> None:
    data = nkibench_checkout(home)
    report = played(
        accelopt,
        "nkibench",
        "nkibench",
        "--data",
        data,
        "--optimize",
        "--ablations",
        "--budget",
        "candidates=5",
    )
    rows = {row["search"]: row for row in report["metrics"]}
    assert list(rows) == [a.name for a in ABLATIONS]
    for row in rows.values():
        assert (row["tasks"], row["success"], row["fast_1"], row["timed"]) == (1, 100.0, 100.0, 1)
        assert row["percent_of_peak_after"] >= row["percent_of_peak_before"] > 0
        assert row["mean_speedup"] == pytest.approx(row["geometric_mean_speedup"])
        assert 0 < row["candidates_per_task"] <= 5
    assert rows["team only"]["tokens_per_task"] > 0 < rows["team only"]["money_per_task"]
    assert rows["search only"]["tokens_per_task"] == 0
    assert rows["search only"]["money_per_task"] is None
    assert rows["search only"]["mean_speedup"] > 1.0


@pytest.mark.slow
@pytest.mark.triton
def test_kernelbench_with_a_recorded_conversation(accelopt: Command, home: Path) -> None:
    data, kernels = kernelbench_checkout(home)
    report = played(accelopt, "kernelbench", "kernelbench", "--data", data, "--kernels", kernels, "--tasks", "1_Add",
                   "--ablation", "team only", "--budget", "candidates=3")  # fmt: skip
    (row,) = report["metrics"]
    assert (row["tasks"], row["success"], row["fast_1"], row["known"]) == (1, 100.0, 100.0, "estimated")
    assert row["tokens_per_task"] > 0 < row["money_per_task"]
    assert row["percent_of_peak_before"] > 0


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.triton
def test_flashinfer_with_a_recorded_conversation(accelopt: Command, home: Path) -> None:
    data = flashinfer_checkout(home / "set")
    report = played(accelopt, "flashinfer", "flashinfer", "--data", data, "--workloads", "1", "--tasks", "triton",
                   "--ablation", "team only", "--budget", "candidates=3")  # fmt: skip
    (row,) = report["metrics"]
    assert row["search"] == "team only"
    assert (row["tasks"], row["success"], row["fast_1"]) == (1, 100.0, 100.0)
    assert row["tokens_per_task"] > 0 < row["money_per_task"]
