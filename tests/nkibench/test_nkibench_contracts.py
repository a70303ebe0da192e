"""AccelOpt's ``NKIKernel`` as a drop-in, and the run over a checkout: what is wrong with one leaves the others."""

import asyncio
import dataclasses
import json

import pytest
from synthetic_checkout import kernel, reference, write_checkout

from accelopt_agent import events
from accelopt_agent.request import Budget
from accelopt_profiling.hosts.host import HostFacts, JobFailed, Progress
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import StepError
from accelopt_profiling.measurement import Correctness, KernelMeasurement, Latency
from accelopt_profiling.plain import to_plain
from accelopt_profiling.quantity import Known
from nkibench.accelopt_kernel import NKIKernel, profile_fields
from nkibench.chart import chart, headline, page
from nkibench.dataset import read_dataset
from nkibench.journal import Journal
from nkibench.measuring import cost
from nkibench.profile_results import read_profiles
from nkibench.report import report_object, table, write_report
from nkibench.result import Best, TaskResult, summarise
from nkibench.run import Plan, Working, in_order, key_of, run
from nkibench.searching import Searching

SAVED_FIELDS = [
    "hbm_read_bytes", "hbm_write_bytes", "psum_read_bytes", "spill_reload_bytes", "spill_save_bytes", "hardware_flops",
    "scalar_engine_active_time_percent", "vector_engine_active_time_percent",
]  # fmt: skip


def test_a_right_kernel_has_accelopts_attributes_and_fields(tmp_path):
    folder = write_checkout(tmp_path, ("scale",))
    program = NKIKernel(
        str(folder / "kernels/scale_M256_N512_0.py"), str(folder / "reference/scale_M256_N512_numpy_2.py")
    )
    assert (program.rel_tol, program.perf_tol) == (2e-5, 0.01)
    program.rel_tol = 1e-4
    res = program.profile(SAVED_FIELDS)
    assert res is program.res
    assert (res.compiled, res.correct, res.runnable) == (True, True, True)
    found = res.metadata
    assert found["min_ms"] <= found["latency"] <= found["max_ms"]
    assert found["rel_diffs"] == pytest.approx((found["max_ms"] - found["min_ms"]) / found["min_ms"])
    assert found["known"] == "estimated"
    assert found["hbm_read_bytes"] == found["hbm_write_bytes"] == 256 * 512 * 4
    assert found["spill_save_bytes"] == 0
    busy = [found.get(f"{engine}_engine_active_time_percent", 0) for engine in ("scalar", "vector")]
    assert 0 < max(busy) < 1
    assert "hardware_flops" not in found  # known on a device only
    json.dumps(found)  # as AccelOpt writes it into its CSV


@pytest.mark.slow
def test_wrong_and_broken_kernels_say_so_where_accelopt_looks(tmp_path):
    folder = write_checkout(tmp_path, ("scale",))
    task = folder / "reference/scale_M256_N512_numpy_2.py"
    program = (
        tmp_path / "elsewhere" / "candidate.py"
    )  # AccelOpt writes candidates to the system's temporary folder
    program.parent.mkdir()

    def profiled(text):
        program.write_text(text)
        return NKIKernel(str(program), str(task)).profile([])

    assert profiled(kernel(name="optimized_kernel")).correct
    wrong = profiled(kernel(value="v4"))
    assert (wrong.compiled, wrong.runnable, wrong.correct) == (True, True, False)
    assert any("wrong-result" in said for said in wrong.metadata["correctness_error"])
    assert "latency" not in wrong.metadata
    broken = profiled(kernel(value="nl.no_such_function(v5)"))
    assert (broken.compiled, broken.correct) == (False, False)
    assert "no_such_function" in broken.metadata["compilation_error"]
    assert isinstance(broken.metadata["compilation_traceback"], str)
    no_python = profiled("def kernel(:\n")
    assert "compilation_error" in no_python.metadata
    gone = NKIKernel(str(tmp_path / "gone.py"), str(task)).profile()
    assert "does not exist" in gone.metadata["compilation_error"]


class DeviceHost:
    """A host with a Trainium, which answers as the step ``trainium`` does (or fails as it does)."""

    name, remote = "trn", True

    def __init__(self, answer):
        self.answer, self.jobs = answer, []

    async def facts(self):
        return HostFacts("trn", resources={"neuron_devices": 1})

    async def run(self, job):
        self.jobs.append(job)
        if isinstance(self.answer, Exception):
            raise self.answer
        yield Progress("trainium", self.answer, final=True)


MEASURED = KernelMeasurement(
    "kernel", 12, "nki", "trn1", "trn", Correctness("passed"), Latency(1333, 1330, 1340, Known.MEASURED)
)


def test_a_host_with_a_device_is_measured_and_its_profile_is_kept(tmp_path):
    subject = read_dataset(write_checkout(tmp_path, ("scale",))).ready[0]
    profile = {"total_time": 0.001333, "hbm_read_bytes": 7, "hardware_flops": 5.0}
    host = DeviceHost({"measurement": to_plain(MEASURED), "profile": profile})
    found = asyncio.run(cost(host, subject, "trn1"))
    assert found.measurement.latency.known is Known.MEASURED
    step = host.jobs[0].steps[0]
    assert (step.name, step.device, len(host.jobs[0].steps)) == ("trainium", True, 1)
    assert step.params["kernels"][0]["name"] == "kernel"
    assert profile_fields(found, ["hardware_flops", "hbm_read_bytes", "spill_save_bytes"]) == {
        "hardware_flops": 5.0, "hbm_read_bytes": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            JobFailed("trainium", StepError("device-busy", "Another process holds the NeuronCores")),
            "Another process",
        ),
        ({}, "cannot be read"),
        ({"measurement": {"name": 3}, "profile": {}}, "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_device_that_fails_is_told_and_not_replaced_by_an_estimate(tmp_path, answer, words):
    subject = read_dataset(write_checkout(tmp_path, ("scale",))).ready[0]
    found = asyncio.run(cost(DeviceHost(answer), subject, "trn1"))
    assert found.measurement is None
    assert words in found.why


# A run


def told(subjects, plan, journal=None):
    async def everything():
        host = LocalHost()
        try:
            return [event async for event in run(host, subjects, plan, journal)]
        finally:
            await host.close()

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
    subjects = read_dataset(folder)
    journal = tmp_path / "journal.jsonl"
    found = {r.task: r for r in results_of(told(subjects, Plan("trn1", jobs=2), Journal(journal)))}
    assert {name: r.status for name, r in found.items()} == {
        "missing": "failed", "scale": "passed", "silu": "passed", "wrong": "wrong", "raises": "failed", "rank": "wrong",
    }  # fmt: skip
    assert "does not exist" in found["missing"].detail
    assert "unknown" in found["raises"].detail
    assert "line 18" in found["raises"].detail
    assert found["scale"].error < 1e-6
    assert found["scale"].peak_us is None  # nothing is published of an operator of that name
    assert found["silu"].percent == pytest.approx(100 * found["silu"].peak_us / found["silu"].latency.us)

    with journal.open("a") as file:
        file.write('{"task": "cut o')
    again = told(subjects, Plan("trn1"), Journal(journal))
    assert {event.task for event in again if isinstance(event, Working)} == {
        "raises"
    }  # what failed is tried again
    kept = {r.task: r for r in results_of(again)}
    assert all(kept[name] == found[name] for name in ("missing", "scale", "silu", "wrong", "rank"))
    (folder / "kernels/silu_M256_N512_0.py").write_text(kernel() + "\n# changed\n")
    changed = told(subjects, Plan("trn1"), Journal(journal))
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
    found = {r.task: r for r in results_of(told(read_dataset(folder), Plan("trn1", jobs=2)))}
    assert found.pop("scale").status == "passed"
    for name, result_found in found.items():
        assert result_found.status != "passed", name
        assert UNFIT[name][1] in result_found.detail, (name, result_found.detail)
        assert "18" in result_found.detail, (name, result_found.detail)


# Searching, with a search that is told in advance


def latency(us):
    return Latency(us, us * 0.8, us * 1.2, Known.ESTIMATED)


def result(task="silu", us=1000.0, **changes):
    plain = TaskResult(
        task, f"{task}_M1", "trn1", "beta1", "k.py", "passed", error=4e-8, cases=9, latency=latency(us),
        bound="memory", peak_us=500.0, peak_bound="memory", published_ms=1.333, key=task,
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def searched(happening, before):
    async def start(request, host):
        for event in happening:
            yield event

    async def everything():
        searching = Searching(Budget(candidates=200), start)
        subject = read_dataset(before).ready[0]
        return [best async for _, best in searching.search(None, subject, result()) if best is not None]

    return asyncio.run(everything())


class Offered:
    """What the benchmark reads of a suggestion."""

    def __init__(self, us, steps, text):
        self.fast, self.steps, self.origin, self.text = latency(us), steps, steps[0], text


def test_the_fastest_proved_version_counts_and_the_baseline_where_there_is_none(tmp_path):
    folder = write_checkout(tmp_path)
    end = events.Finished("run", "nothing left to try", events.Usage(candidates=2, seconds=3.0))
    begun = events.BaselineMeasured("kernel", None)
    tried = events.CandidateTried(7, None, "faster", latency(700))
    found = [
        tried,
        events.SuggestionFound(Offered(800.0, ("rule:a",), "A")),
        events.SuggestionFound(Offered(700.0, ("rule:a", "rule:b"), "B")),
        end,
    ]
    (best,) = searched([begun, *found], folder)
    assert (best.latency.us, best.steps, best.text) == (700.0, ("rule:a", "rule:b"), "B")
    assert (best.tried, best.accepted, best.seconds, best.reason) == (7, 2, 3.0, "nothing left to try")
    (nothing,) = searched([begun, end], folder)
    assert (nothing.latency.us, nothing.steps, nothing.text) == (1000.0, (), "")
    (slower,) = searched([begun, events.SuggestionFound(Offered(1200.0, ("rule:a",), "C")), end], folder)
    assert (slower.latency.us, slower.text) == (1000.0, "")
    assert searched([end], folder) == []  # it never began, so there is no outcome to keep


def test_a_search_that_fails_unexpectedly_ends_the_run_instead_of_waiting_for_ever(tmp_path):
    subjects = read_dataset(write_checkout(tmp_path, ("silu",)))
    plan = Plan("trn1", searching=Searching(Budget(), lambda request, host: 1 / 0))
    journal = Journal(tmp_path / "journal.jsonl")
    subject = subjects.ready[0]
    journal.add(result(case=subject.case_name, key=key_of(subject, plan)))
    with pytest.raises(ZeroDivisionError):
        told(subjects, plan, journal)


# What is written


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
    assert read_profiles(out / "profile_results.csv")[0].profile["latency"] == 1.0
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


def test_a_journal_keeps_results_whatever_cut_it_off(tmp_path):
    path = tmp_path / "journal.jsonl"
    Journal(path).add(RESULTS[0])
    with path.open("ab") as file:
        file.write(b'{"task": "cut \xff')
    journal = Journal(path)
    assert journal.get("silu") == RESULTS[0]
    journal.add(RESULTS[2])
    assert Journal(path).get("lora") == RESULTS[2]
    assert Journal(path).get("absent") is None
