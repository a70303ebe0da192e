"""What a search found and what is written of a run: means, table, JSON, CSV, chart and kernels."""

import asyncio
import csv
import dataclasses
import json

import pytest
from support.synthetic_checkout import write_checkout
from support.task_results import latency, result

from accelopt_agent import events
from accelopt_agent.request import Budget
from accelopt_profiling.measurement import Finding, KernelMeasurement
from accelopt_profiling.quantity import executed
from nkibench import measuring
from nkibench.chart import chart, headline, page
from nkibench.dataset import read_dataset
from nkibench.measuring import Cost
from nkibench.report import report_object, table, write_report
from nkibench.result import Best, TaskResult, summarise
from nkibench.run import in_order
from nkibench.searching import Searching
from nkibench.task import tasks

#: What the profile of a search's winner says: a version that takes three passes for a product.
IN_PARTS = KernelMeasurement(
    "kernel", 1, "nki", "trn1", latency=latency(700.0), quantities={"product_passes": executed(3.0)}
)


def searched(happening, before, winner=Cost(IN_PARTS)):  # noqa: B008
    async def start(request, host):
        for event in happening:
            yield event

    async def everything():
        searching = Searching(Budget(candidates=200), start)
        subject = read_dataset(before).ready[0]
        subject = dataclasses.replace(subject, task=tasks()["matmul"], values=tasks()["matmul"].values)
        return [best async for _, best in searching.search(None, subject, result()) if best is not None]

    async def cost(host, case, target, text):
        return winner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "cost", cost)
        return asyncio.run(everything())


class Offered:
    """What the benchmark reads of a suggestion."""

    def __init__(self, us, steps, text):
        self.fast, self.steps, self.origin, self.text = latency(us), steps, steps[0], text


def test_the_fastest_checked_version_counts_and_the_baseline_where_there_is_none(tmp_path):
    folder = write_checkout(tmp_path)
    end = events.Finished("run", "nothing left to try", events.Usage(candidates=2, seconds=3.0))
    begun = events.BaselineMeasured("kernel", None)
    tried = events.CandidateTried(7, None, "faster", latency(700))
    suggestions = [
        tried,
        events.SuggestionFound(Offered(800.0, ("rule:a",), "A")),
        events.SuggestionFound(Offered(700.0, ("rule:a", "rule:b"), "B")),
        end,
    ]
    (best,) = searched([begun, *suggestions], folder)
    assert (best.latency.us, best.steps, best.text) == (700.0, ("rule:a", "rule:b"), "B")
    assert (best.tried, best.accepted, best.seconds, best.reason) == (7, 2, 3.0, "nothing left to try")
    assert best.peak_us == pytest.approx(0.75 * 21701, rel=1e-3)
    refused = Cost(None, [Finding("capacity", 3, "error", "It needs 16 of 8 PSUM banks.")])
    (unlaunchable,) = searched([begun, *suggestions], folder, refused)
    assert (unlaunchable.latency.us, unlaunchable.text) == (1000.0, "")
    assert unlaunchable.reason == "nothing left to try; line 3: It needs 16 of 8 PSUM banks."
    (nothing,) = searched([begun, end], folder)
    assert (nothing.latency.us, nothing.steps, nothing.text) == (1000.0, (), "")
    (slower,) = searched([begun, events.SuggestionFound(Offered(1200.0, ("rule:a",), "C")), end], folder)
    assert (slower.latency.us, slower.text) == (1000.0, "")
    assert searched([end], folder) == []  # it never began, so there is no outcome to keep


RESULTS = [
    result(best=Best(latency(625.0), ("rule:nki-larger-tiles",), 40, 3, 2, 9.0, "done", "# faster\n")),
    result("<bmm>", us=2000.0),
    result("lora", us=400.0),
    TaskResult(
        "gqa", "gqa_B1", "trn1", "beta1", "g.py", "failed", "line 3: nl.unknown | is <unknown>", peak_us=5.0
    ),
]


def test_the_geometric_mean_counts_what_passed_and_says_of_how_many():
    summary = summarise(RESULTS)
    assert (summary.counted, summary.of, summary.known) == (3, 4, "estimated")
    assert summary.baseline == pytest.approx((50 * 25 * 125) ** (1 / 3))
    assert summary.best == pytest.approx((80 * 25 * 125) ** (1 / 3))
    assert "over 3 of 4 tasks (estimated)" in headline(summary)
    assert summarise([]).baseline is None
    assert summarise(RESULTS[3:]).best is None


def test_the_page_loads_nothing_escapes_everything_and_draws_above_peak(tmp_path):
    text = page(RESULTS, "trn1")
    assert "<bmm>" not in text
    assert "&lt;bmm&gt;" in text
    assert "nl.unknown | is &lt;unknown&gt;" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in text
    picture = chart(RESULTS)
    assert picture.count('class="best" x="190" y=') == 3
    assert "50 to 80 %" in picture
    assert "125 %" in picture  # more than peak is shown, not hidden and not fatal


def test_table_json_csv_and_kernels_are_written(tmp_path):
    subjects = read_dataset(write_checkout(tmp_path))
    cases = [s.case_name for s in subjects.ready]
    results = [dataclasses.replace(r, case=case) for r, case in zip(RESULTS, cases, strict=False)]
    out = tmp_path / "out"
    write_report(out, subjects, results, "trn1")
    data = json.loads((out / "results.json").read_text())
    assert data["geomean_percent_of_peak"]["gain"] == pytest.approx(
        (80 * 25) ** 0.5 - (50 * 25) ** 0.5, abs=1e-9
    )
    assert data["published_geomean"] == {"baseline": 0.49, "best": 0.61}
    assert data["tasks"][0]["best_percent_of_peak"] == 80
    assert data["tasks"][0]["latency"]["known"] == "estimated"
    assert (out / f"{cases[0]}_best.py").read_text() == "# faster\n"
    with (out / "profile_results.csv").open(newline="") as file:
        assert json.loads(next(csv.DictReader(file))["profile"])["latency"] == 1.0
    assert (
        "| silu | passed | 4.0e-08 | 1 | 50.0 % | memory | 0.625 | 80.0 % |"
        in (out / "results.md").read_text()
    )
    assert "nl.unknown \\| is" in table(RESULTS, "trn1")
    assert report_object([], "trn2")["geomean_percent_of_peak"]["baseline"] is None
    assert not list(out.glob(".*"))  # no temporary files are left


def test_results_are_in_the_order_of_the_subjects(tmp_path):
    subjects = read_dataset(write_checkout(tmp_path))
    first, second = (s.case_name for s in subjects.ready)
    came = [result("other", case=second), result("gone", case="gone"), result("scale", case=first)]
    assert [r.case for r in in_order(subjects, came)] == ["gone", first, second]
