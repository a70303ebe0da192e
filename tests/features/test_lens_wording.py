"""How results read: every state of a lens, the numbers in it, and when two results differ."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from accelopt_agent.suggestions.suggestion import Speedup
from accelopt_lsp.features import wording
from accelopt_lsp.features.code_actions import code_actions as actions
from accelopt_lsp.features.diagnostics import diagnostics
from accelopt_lsp.features.hints import hints
from accelopt_lsp.features.hover import hover
from accelopt_lsp.features.lens import lenses, result_title
from accelopt_lsp.features.wording import change
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_lsp.state.version import Version, with_version
from accelopt_profiling.kernels import Kernel, KernelSource
from accelopt_profiling.measurement import (
    Correctness,
    FileMeasurement,
    Finding,
    KernelMeasurement,
    Latency,
    LineCost,
)
from accelopt_profiling.quantity import Known, Quantity, estimated, executed, not_measured

KERNEL = Kernel("silu", "nki", 3, 2, 9, "hash")
PARTLY = Correctness("passed", "", 512, 4096)
PASSED = Correctness("passed", "", 4096, 4096)


def estimate(us: float, share: float = 0.1) -> Latency:
    return Latency(us, us * (1 - share), us * (1 + share), Known.ESTIMATED)


def measured(us: float, low: float, high: float) -> Latency:
    return Latency(us, low, high, Known.MEASURED)


def result(latency: Latency, **more: object) -> KernelMeasurement:
    base = KernelMeasurement(
        "silu", 3, "nki", "trn1", correctness=PASSED, latency=latency, percent_of_peak=41.2, bound="VectorE",
        content_hash="hash",
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


SHOWN = result(estimate(911))
STATE = Document("file:///k.py", "/k.py", read=True)


@pytest.mark.parametrize(
    ("kernel", "profiling", "title"),
    [
        (KernelState(KERNEL), False, "not profiled yet"),
        (KernelState(KERNEL), True, "profiling for trn1..."),
        (KernelState(KERNEL, SHOWN), False, "est. 820-1,000 us on trn1 · VectorE bound · 41 %"),
        (KernelState(KERNEL, SHOWN), True, "est. 820-1,000 us on trn1 · VectorE bound · 41 % · profiling..."),
        (
            KernelState(KERNEL, SHOWN, touched=True), False,
            "before this edit: est. 820-1,000 us on trn1 · VectorE bound · 41 %",
        ),
        (
            KernelState(KERNEL, SHOWN, result(estimate(1111), content_hash="older")), False,
            "est. 820-1,000 us on trn1 · VectorE bound · 41 % · 1.22x faster than last save",
        ),
        (
            KernelState(KERNEL, result(measured(3.2, 3.1, 3.3), target="h100", bound=None)), False,
            "measured 3.2 us on h100 · 41 %",
        ),
        (
            KernelState(KERNEL, result(estimate(20_000), correctness=Correctness("failed"))), False,
            "wrong result · not measured on trn1",
        ),
        (
            KernelState(KERNEL, result(estimate(911), correctness=Correctness())), False,
            "est. 820-1,000 us on trn1 · VectorE bound · 41 % · result not checked",
        ),
        (
            KernelState(KERNEL, result(estimate(911), correctness=PARTLY)), False,
            "est. 820-1,000 us on trn1 · VectorE bound · 41 % · compared in part",
        ),
        (KernelState(KERNEL, result(Latency())), False, "not measured on trn1"),
        (KernelState(KERNEL, result(Latency(), correctness=Correctness())), False, "not measured on trn1"),
    ],
)  # fmt: skip
def test_titles(kernel: KernelState, profiling: bool, title: str) -> None:
    assert result_title(STATE, kernel, "trn1", profiling) == title


@pytest.mark.parametrize(
    ("detail", "title"),
    [
        ("short", "est. 820-1,000 us · compared in part"),
        ("normal", "est. 820-1,000 us on trn1 · latency bound · 41 % · compared in part"),
        (
            "full",
            "est. 820-1,000 us on trn1 · latency bound (VectorE waits for line 16) · 41 % of peak"
            " · x 64x64 fp32 · 512 of 4,096 elements compared",
        ),
    ],
)
def test_how_much_a_title_shows_is_a_setting(detail: wording.Detail, title: str) -> None:
    known = result(
        estimate(911),
        correctness=PARTLY,
        bound="latency",
        waiting="VectorE waits for line 16",
        case="x 64x64 fp32",
    )
    assert result_title(STATE, KernelState(KERNEL, known), "trn1", False, detail) == title


@pytest.mark.parametrize(
    ("low", "us", "high", "text"),
    [
        (22.5, 45.1, 188.0, "est. 22-190 us"),
        (1260.0, 1680.0, 2350.0, "est. 1.3-2.4 ms"),
        (900.0, 904.0, 909.0, "est. 900-909 us"),
        (300.0, 300.0, 300.0, "est. 300 us"),
        (820.0, 911.0, 1002.0, "est. 820-1,000 us"),
    ],
)
def test_an_estimate_shows_its_interval_with_the_digits_that_are_known(
    low: float, us: float, high: float, text: str
) -> None:
    assert wording.duration(Latency(us, low, high, Known.ESTIMATED)) == text


def test_a_kernel_whose_main_loop_did_not_run_says_so_and_its_sizes_can_be_changed() -> None:
    findings = [
        Finding("main-work-missed", 5, "warning", "The main loop went round no time."),
        Finding("inferred-problem", 3, "information", "The arguments were inferred."),
    ]
    kernel = KernelState(KERNEL, result(estimate(911), findings=findings, case="x 64x512 fp32"))
    titles = [lens.title for lens in lenses(replace(STATE, kernels=(kernel,)), [], {})]
    said = "main work did not run, line 5 · not measured on trn1"
    assert titles == ["Optimize", "Change 64x512 (inferred)", said]


def test_a_share_that_would_read_as_nothing_says_that_it_is_small() -> None:
    assert [wording.percent(share) for share in (0.0, 0.01, 0.05, 2.94, 41.2)] == [
        "0.0",
        "under 0.1",
        "0.1",
        "2.9",
        "41",
    ]


def test_a_kernel_without_a_problem_says_what_is_missing() -> None:
    unknown = KernelState(KERNEL, result(Latency(), correctness=Correctness()))
    state = replace(STATE, run_findings=(Finding("no-problem", 3, "information", "No problem was found."),))
    assert result_title(state, unknown, "trn1", False) == "no problem file · not measured on trn1"


@pytest.mark.parametrize(
    ("finding", "latency", "title"),
    [
        (
            Finding("kernel-raised", 21, "error", "The kernel raised AttributeError: no x"), Latency(),
            "raises AttributeError, line 21 · not measured on trn1",
        ),
        (
            Finding("out-of-bounds", 12, "error", "The load reads outside x."), estimate(911),
            "out of bounds, line 12 · not measured on trn1",
        ),
        (
            Finding("never-launched", 3, "warning", "silu was not launched."), Latency(),
            "never launched · not measured on trn1",
        ),
        (
            Finding("timeout", 3, "information", "It took longer."), estimate(911),
            "est. 820-1,000 us on trn1 · VectorE bound · 41 %",
        ),
    ],
)  # fmt: skip
def test_what_stopped_a_kernel_comes_first(finding: Finding, latency: Latency, title: str) -> None:
    kernel = KernelState(KERNEL, result(latency, findings=[finding]))
    assert result_title(STATE, kernel, "trn1", False) == title


def test_a_file_that_does_not_parse_says_where() -> None:
    state = replace(STATE, findings=(Finding("syntax-error", 12, "error", "It does not parse."),))
    older = "does not parse, line 12 · before this edit: est. 820-1,000 us on trn1 · VectorE bound · 41 %"
    assert result_title(state, KernelState(KERNEL, SHOWN, touched=True), "trn1", False) == older
    assert result_title(state, KernelState(KERNEL), "trn1", False) == "does not parse, line 12"


def test_a_result_that_is_being_checked_says_so() -> None:
    kernel_result = result(estimate(911), stage="compiled", correctness=Correctness())
    assert result_title(STATE, KernelState(KERNEL, kernel_result), "trn1", True).endswith(
        " · checking the result..."
    )


def test_a_kernel_bound_by_latency_says_what_waits_for_what() -> None:
    kernel_result = result(estimate(911), bound="latency", waiting="VectorE waits for line 16 (ScalarE)")
    assert wording.headline(kernel_result).endswith(
        "latency bound (VectorE waits for line 16 (ScalarE)) · 41 % of peak"
    )


@pytest.mark.parametrize(
    ("latency", "text"),
    [
        (Latency(2470.0, 1650.0, 3080.0, Known.ESTIMATED), "est. 2.47 ms (1.65-3.08)"),
        (estimate(911), "est. 911 us (820-1,000)"),
        (measured(3.2, 3.1, 3.3), "measured 3.2 us"),
        (Latency(2.5e6, 2.4e6, 2.6e6, Known.ESTIMATED), "est. 2.5 s (2.4-2.6)"),
    ],
)
def test_a_duration_chooses_its_unit(latency: Latency, text: str) -> None:
    assert wording.duration_interval(latency) == text


def with_lines(lines: list[LineCost], **more: object) -> Document:
    return replace(STATE, kernels=(KernelState(KERNEL, result(estimate(911), lines=lines, **more)),))


def test_a_hint_has_room_for_the_cause_and_the_share() -> None:
    long = LineCost(4, "read ~8.59 GB (67.1 MB unique), 6x16 B async copies, 2 layout conversions", 0.5)
    short = replace(long, line=5, cause="strided")
    first, second = hints(with_lines([long, short]), ["pass"] * 9, 1, 9)
    assert first.text == "read ~8.59 GB (67.1 MB unique)"
    assert second.text == "strided, 50 %"
    assert second.tooltip.startswith(long.text)
    assert "50 % of what limits silu, est. 410-500 us" in second.tooltip


def test_shares_of_engines_that_overlap_are_those_of_the_busiest() -> None:
    costs = [
        LineCost(3, "DMA est. 473 us, 28 %", 0.28, engine="DMA"),
        LineCost(4, "ScalarE est. 186 us, 11 %", 0.11, engine="ScalarE"),
        LineCost(5, "VectorE est. 949 us, 56 %; waits", 0.56, cause="waits on ScalarE", engine="VectorE"),
        LineCost(6, "DMA est. 473 us, 28 %", 0.28, cause="512 B pieces", engine="DMA"),
        LineCost(7, "VectorE est. 300 us, 18 %", 0.18, engine="VectorE"),
    ]
    busy = {"DMA busy": estimated(900, 800, 1000, "us"), "VectorE busy": estimated(950, 900, 1000, "us")}
    shown = list(hints(with_lines(costs, quantities=busy), ["pass"] * 9, 1, 9))
    assert [h.text for h in shown] == [
        "DMA, overlaps", "ScalarE, overlaps", "VectorE 56 %, waits on ScalarE", "DMA, 512 B pieces", "VectorE 18 %",
    ]  # fmt: skip
    assert sum(int(m[1]) for h in shown if (m := re.search(r"(\d+) %", h.text))) <= 100
    assert "keeps DMA busy for 28 % of the time, beside VectorE, which is busiest" in shown[0].tooltip
    assert all("est." not in h.text for h in shown)


CALLS = """\
import nki
@nki.jit
def silu(x):
    a = nl.load(
        x[0],  # the first )
        mask="(",
    )
    for i in nl.affine_range(
        4
    ):
        b = f(a); c = g(b)
        d = b + \\
            c
"""


@pytest.mark.parametrize(("line", "end"), [(4, 7), (5, 7), (8, 10), (10, 10), (11, 11), (12, 13)])
def test_a_hint_stands_behind_its_statement(line: int, end: int) -> None:
    kernel = Kernel("silu", "nki", 3, 2, 13, "hash")
    known = result(estimate(911), lines=[LineCost(line, "DMA", 0.5, cause="DMA")])
    state = replace(STATE, kernels=(KernelState(kernel, known),))
    assert [h.line for h in hints(state, CALLS.splitlines(True), 1, 99)] == [end]
    assert list(hints(state, CALLS.splitlines(True), 1, end - 1)) == []


def test_a_text_that_cannot_be_read_leaves_hints_where_they_are() -> None:
    state = with_lines([LineCost(4, "DMA", 0.5, cause="DMA")])
    for text in ("x = (\n" * 9, '"x\n' * 9, " x\n    y\n  z\n" * 3, ""):
        assert [h.line for h in hints(state, text.splitlines(True), 1, 99)] == [4]


def test_a_hover_says_how_much_of_the_result_was_compared() -> None:
    kernel_result = result(
        estimate(911), correctness=Correctness("passed", "relative L2 error 4e-07", 4096, 4096)
    )
    text = hover(replace(STATE, kernels=(KernelState(KERNEL, kernel_result),)), KERNEL.line, markdown=True)
    assert text is not None
    assert "- **result** agrees with the reference: all 4,096 elements; relative L2 error 4e-07\n" in text


@pytest.mark.parametrize("markdown", [True, False])
@pytest.mark.parametrize(
    "kernel",
    [
        KernelState(KERNEL, SHOWN),
        KernelState(KERNEL, SHOWN, touched=True),
        KernelState(KERNEL, result(estimate(911), correctness=Correctness(), case="x 64x64 fp32")),
        KernelState(
            KERNEL, result(Latency(), findings=[Finding("kernel-raised", 5, "error", "It\nraised.")])
        ),
        KernelState(KERNEL, result(measured(3.2, 3.1, 3.3), bound=None, percent_of_peak=None)),
    ],
)
def test_a_hover_has_five_rows_and_then_the_details(kernel: KernelState, markdown: bool) -> None:
    text = hover(replace(STATE, kernels=(kernel,)), KERNEL.line, markdown)
    assert text is not None
    rows, rule, title, *details = text.split("\n\n")
    assert title.startswith("**silu**" if markdown else "silu")
    assert " on trn1" in rows.splitlines()[0]
    names = [row.removeprefix("- **").split(" ")[0].strip("*:") for row in rows.splitlines()]
    assert names == ["time", "bound", "why", "result", "next"]
    assert rule == "---"
    assert details


def test_a_hover_counts_what_was_compared() -> None:
    detail = "relative L2 error 2e-08 against the reference in float64, 512 of 4,096 elements compared, those that a"
    known = result(estimate(911), correctness=Correctness("passed", detail, 512, 4096))
    text = hover(replace(STATE, kernels=(KernelState(KERNEL, known),)), KERNEL.line, markdown=False)
    assert text is not None
    says = "result: agrees with the reference: 512 of 4,096 elements, those that a sample of the programs writes;"
    assert f"{says} relative L2 error 2e-08 against the reference in float64\n" in text


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (estimate(1000), estimate(500), "2.0x faster than last save"),
        (estimate(1000), estimate(1043), "within noise of last save"),
        (estimate(1000), estimate(1002), "same as last save"),
        (estimate(1000), estimate(2590), "2.6x slower than last save"),
        (measured(10, 9.5, 10.5), measured(9.8, 9.4, 10.2), "within noise of last save"),
        (measured(1000, 990, 1010), measured(700, 690, 710), "1.43x faster than last save"),
        (estimate(1000), measured(500, 490, 510), None),
        (Latency(), estimate(500), None),
    ],
)
def test_changes(before: Latency, now: Latency, says: str | None) -> None:
    changed = change(result(before), result(now))
    assert (str(changed) if changed else None) == says


def test_another_target_or_host_is_no_change() -> None:
    assert change(result(estimate(9), target="trn2"), result(estimate(5))) is None
    assert change(result(estimate(9), host="lab"), result(estimate(5))) is None
    assert change(None, result(estimate(5))) is None


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (executed(114_688), "114,688"),
        (executed(117_440_512, "B"), "117 MB"),
        (executed(512, "B"), "512 B"),
        (estimated(911.2, 819.9, 1002.4, "us"), "820-1,000 us"),
        (executed(12_582_912, "sectors"), "12.6 M sectors"),
        (executed(24_580, "B per partition"), "24.6 kB per partition"),
        (estimated(585e3, 528e3, 641e3, "bytes"), "530-640 kB"),
        (estimated(33.0, 7.97, 66.8, "%"), "8-67 %"),
        (executed(0.01234, "us"), "0.0123 us"),
        (not_measured("us"), "-"),
        (Quantity(41.25, Known.COMPILED, "%"), "41.2 %"),
        (executed(1, "launches"), "1 launch"),
        (executed(1, "programs"), "1 program"),
        (executed(2, "tiles"), "2 tiles"),
    ],
)
def test_quantities(quantity: Quantity, text: str) -> None:
    assert wording.quantity(quantity) == text


def test_a_speedup_says_how_it_is_known() -> None:
    assert wording.speedup(Speedup(1.8, 1.6, 2.1, Known.ESTIMATED)) == "1.80x est. (1.60-2.10)"
    assert wording.speedup(Speedup(1.8, 1.799, 1.801, Known.ESTIMATED)) == "1.80x est."
    assert wording.speedup(Speedup(1.8, 1.79, 1.82, Known.MEASURED)) == "1.80x measured (1.79-1.82)"
    larger = Speedup(3.3, 2.2, 4.5, Known.ESTIMATED, "larger batches")
    assert wording.speedup(larger) == "3.3x est. at larger batches (2.2-4.5)"


def test_a_slower_version_is_a_warning_and_noise_is_none() -> None:
    slower = KernelState(KERNEL, SHOWN, result(estimate(800), content_hash="older"))
    assert [d.finding.code for d in diagnostics(replace(STATE, kernels=(slower,)))] == ["regression"]
    noise = KernelState(KERNEL, SHOWN, result(estimate(900), content_hash="older"))
    assert diagnostics(replace(STATE, kernels=(noise,))) == []


def test_what_a_run_found_is_old_after_an_edit_but_a_missing_problem_is_not() -> None:
    run_findings = (
        Finding("no-problem", 3, "information", "None."),
        Finding("timeout", 3, "error", "Too long."),
    )
    state = replace(STATE, kernels=(KernelState(KERNEL, touched=True),), run_findings=run_findings)
    by_code = {d.finding.code: d.finding for d in diagnostics(state)}
    assert by_code["no-problem"].message == "None."
    assert (by_code["timeout"].severity, by_code["timeout"].message) == (
        "hint",
        "Before this edit: Too long.",
    )


def test_a_result_for_inferred_arguments_says_so() -> None:
    inferred = Finding("inferred-problem", 3, "information", "The arguments were inferred.")
    state = replace(STATE, run_findings=(inferred,))
    title = result_title(state, KernelState(KERNEL, replace(SHOWN, correctness=Correctness())), "trn1", False)
    assert title.endswith("VectorE bound · 41 % · inferred, not checked")


def test_why_there_is_no_time_comes_before_what_was_inferred() -> None:
    reasons = [
        Finding("inferred-problem", 3, "information", "The arguments were inferred."),
        Finding("unsupported", 5, "information", "Not emulated: the inline assembly `cvt`."),
    ]
    assert wording.stop_reason(result(Latency(None), findings=reasons)) == "cannot run here, line 5"
    assert wording.stop_reason(result(Latency(None), findings=reasons[:1])) == "inferred arguments"


def test_a_kernel_that_its_inferred_arguments_stop_says_why_and_offers_to_change_them() -> None:
    findings = [
        Finding("inferred-problem", 3, "information", "The arguments were inferred."),
        Finding(
            "kernel-raised", 5, "information", "With the inferred arguments: The kernel raised TypeError."
        ),
    ]
    state = replace(STATE, kernels=(KernelState(KERNEL, result(Latency(None), findings=findings)),))
    assert [lens.title for lens in lenses(state, [], {})][1] == "Change arguments (inferred)"
    said = hover(state, 3, False) or ""
    assert "why: line 5: With the inferred arguments: The kernel raised TypeError." in said
    assert "next: write the problem file, with the arguments" in said


def test_a_kernel_that_a_later_call_may_launch_keeps_its_numbers_until_the_profile_ends() -> None:
    silent = result(Latency(None), findings=[Finding("never-launched", 3, "information", "Not launched.")])
    results = FileMeasurement("k.py", [silent])
    source = KernelSource("", kernels=(KERNEL,))
    state = replace(STATE, kernels=(KernelState(KERNEL, SHOWN),))
    assert state.with_results(results, source).kernels[0].shown == SHOWN
    (shown,) = state.with_results(replace(results, complete=True), source).kernels
    assert shown.shown is not None
    assert shown.shown.findings == silent.findings


@pytest.mark.parametrize("code", ["no-problem", "inferred-problem"])
def test_a_file_whose_last_kernel_was_deleted_still_has_its_actions(code: str) -> None:
    finding = Finding(code, 3, "information", "It is so.")
    state = replace(STATE, kernels=(), run_findings=(finding,))
    assert [a.command for a in actions(state, 1, 1, [])] == []


def saves(*times: float, case: str = "") -> tuple[Version, ...]:
    versions: tuple[Version, ...] = ()
    for n, us in enumerate(times):
        versions = with_version(versions, result(estimate(us), content_hash=str(n), case=case))
    return versions


@pytest.mark.parametrize(
    ("versions", "line"),
    [
        ((), ""),
        (saves(2000, 911), ""),
        (saves(2000, 911, 2000)[:2] + saves(2000), ""),  # a text that is back is no third one
        (saves(2000, 1000, 911), "█▄▄"),
        (saves(1, 8000, 911), "▁█▁"),
        (saves(*range(1000, 2000, 50)), "▇▇▇█████"),
        (saves(3000, 2000, 911, case="x 8x8"), ""),  # times of other sizes
        ((*saves(3000, 2000)[:1], Version("m", measured(5, 4, 6), "trn1", ""), *saves(1, 911)[1:]), ""),
    ],
)
def test_a_sparkline_has_the_last_saves_where_three_differ(versions: tuple[Version, ...], line: str) -> None:
    kernel = KernelState(KERNEL, SHOWN, versions=versions)
    title = result_title(STATE, kernel, "trn1", False)
    assert title.partition(" · 41 %")[2] == (f" · {line}" if line else "")
    assert not set(result_title(STATE, kernel, "trn1", False, "short")) & set("▁▂▃▄▅▆▇█")
    assert not set(result_title(STATE, replace(kernel, touched=True), "trn1", False)) & set("▁▂▃▄▅▆▇█")


@pytest.mark.parametrize(
    ("target", "latency", "place"),
    [
        ("trn2", estimate(911), "trn2"),
        ("trn3", estimate(911), "trn3, unvalidated"),
        ("rtx4090", estimate(911), "rtx4090, unvalidated"),
        ("rtx4090", measured(911, 900, 920), "rtx4090"),
        ("trn3", Latency(), "trn3"),
        ("a target of a host", estimate(911), "a target of a host"),
    ],
)
def test_a_model_that_no_device_was_compared_with_is_told(target: str, latency: Latency, place: str) -> None:
    shown = result(latency, target=target)
    assert wording.where(shown) == place
    assert f" on {place}" in wording.headline(shown)
    text = hover(replace(STATE, kernels=(KernelState(KERNEL, shown),)), KERNEL.line, markdown=True)
    assert f" on {place}" in (text or "")
