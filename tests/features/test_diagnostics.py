"""What is said of a file: one diagnostic for a cause, few for a kernel, and silence where a person wants it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accelopt_lsp.features.diagnostics import MOST, MOST_OF_KERNEL, diagnostics
from accelopt_lsp.features.silence import file_comment, line_comment
from accelopt_lsp.state.line_map import LineMap
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_profiling.ignored import IgnoredFindings
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import FileMeasurement, Finding, KernelMeasurement

KERNELS = (Kernel("silu", "nki", 10, 10, 29, "hash"), Kernel("gelu", "nki", 30, 30, 49, "hash"))


def document(findings: list[Finding], comments: str = "") -> Document:
    """A file with two kernels of 20 lines each, and what its last profile found."""
    states = tuple(KernelState(kernel) for kernel in KERNELS)
    ignored = IgnoredFindings.of(comments)
    return Document(
        "file:///k.py", "/k.py", kernels=states, run_findings=tuple(findings), read=True, ignored=ignored
    )


def small(line: int, size: int, percent: int) -> Finding:
    message = (
        f"This transfer moves pieces of {size} B and keeps the DMA engines busy for {percent} % of the time."
    )
    return Finding("small-dma", line, "information", message)


def test_one_diagnostic_for_a_cause_of_a_file_with_the_other_places() -> None:
    first, *more = (small(12, 512, 5), small(14, 256, 7), small(19, 512, 7), small(33, 512, 8))
    (only,) = diagnostics(document([first, *more]))
    assert only.finding == first
    assert only.places == ((14, "in silu"), (19, "in silu"), (33, "in gelu"))
    assert only.message.endswith("of the time. Also on lines 14, 19, 33.")


def test_variants_of_a_kernel_share_a_cause_whose_words_name_them() -> None:
    def not_launched(name: str, line: int) -> Finding:
        message = (
            f"{name} was not launched. `accelopt profile --kernel {name}` infers arguments for it alone."
        )
        return Finding("never-launched", line, "information", message)

    names = ("silu", "silu_v1", "silu_v11", "silu#2")
    states = tuple(
        KernelState(Kernel(n, "triton", 10 * i, 10 * i, 10 * i + 9, n)) for i, n in enumerate(names, 1)
    )
    found = tuple(not_launched(name.split("#")[0], 10 * i) for i, name in enumerate(names, 1))
    state = replace(document([]), kernels=states, run_findings=found)
    (only,) = diagnostics(state)
    assert (only.finding, [line for line, _ in only.places]) == (found[0], [20, 30, 40])
    other = replace(found[1], message=found[1].message.replace("silu_v1", "gelu"))
    assert len(diagnostics(replace(state, run_findings=(found[0], other)))) == 2


def test_the_gravest_place_of_a_cause_stands_for_the_others() -> None:
    mild, grave = small(12, 512, 5), replace(small(33, 512, 40), severity="warning")
    (only,) = diagnostics(document([mild, grave]))
    assert (only.finding, only.places) == (grave, ((12, "in silu"),))


def test_an_error_stands_at_each_kernel_that_has_it() -> None:
    wrong = [Finding("wrong-result", line, "error", f"{line} elements differ.") for line in (12, 14, 33)]
    assert [(d.finding.line, len(d.places)) for d in diagnostics(document(wrong))] == [(12, 1), (33, 0)]


def test_what_is_deprecated_is_said_once_for_a_name() -> None:
    gone = "nl.affine_range is deprecated since NKI 0.7; use range."
    lines = [Finding("deprecated", line, "information", gone) for line in (12, 13, 31, 40, 41, 42, 43, 44)]
    (only,) = diagnostics(document(lines))
    assert only.message == f"{gone} Also on lines 13, 31, 40, 41, 42, 43 and 1 more."


def test_a_kernel_has_three_diagnostics_and_the_last_names_the_rest() -> None:
    hints = [Finding(f"code-{letter}", 15, "hint", f"About {letter}.") for letter in "abc"]
    error, warning = (
        Finding("wrong-result", 28, "error", "Wrong."),
        Finding("spills", 20, "warning", "It spills."),
    )
    shown = diagnostics(document([*hints, error, warning]))
    assert len(shown) == MOST_OF_KERNEL
    assert [d.finding.code for d in shown] == ["more-findings", "spills", "wrong-result"]
    assert shown[0].places == tuple((15, f"About {letter}.") for letter in "abc")
    assert shown[0].message == (
        "3 more findings: code-a, code-b, code-c. `accelopt profile FILE` prints all."
    )


def test_what_is_in_no_kernel_is_counted_beyond_a_hundred() -> None:
    loose = [Finding("masked-lanes", 100 + n, "hint", chr(97 + n % 26) * n) for n in range(1, 500)]
    shown = diagnostics(document(loose))
    assert len(shown) == MOST
    assert [d.finding.code for d in shown].count("more-findings") == 1


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("x\n" * 11 + "y = load()  # accelopt: ignore=small-dma\n", [14]),
        ("x\n" * 10 + "    # accelopt: ignore=spills, small-dma\n", [14]),
        ("# accelopt: ignore-file=small-dma\n", []),
        ("# accelopt: ignore=small-dma\n", [12, 14]),
        ("# accelopt: ignore-file=spills\n", [12, 14]),
        ("# accelopt: problem=p.py\n", [12, 14]),
    ],
)
def test_a_comment_silences_a_line_or_a_file(comment: str, left: list[int]) -> None:
    told = IgnoredFindings.of(comment).rest([small(12, 512, 5), small(14, 512, 5)])
    assert [f.line for f in told] == left


def test_a_setting_silences_everywhere_but_no_error_and_nothing_without_a_time() -> None:
    kept = [
        Finding("wrong-result", 12, "error", "Wrong."),
        Finding("main-work-missed", 13, "warning", "No loop."),
    ]
    codes = {"wrong-result", "main-work-missed", "small-dma"}
    state = document([*kept, small(14, 512, 5)])
    assert [d.finding for d in diagnostics(state, codes)] == kept
    kernel = KernelMeasurement("silu", 10, "nki", "trn1", findings=[*kept, small(14, 512, 5)])
    measured = FileMeasurement("k.py", [kernel], [small(20, 512, 5)])
    rest = IgnoredFindings().rest_of(measured, codes)
    assert (rest.kernels[0].findings, rest.findings) == (kept, [])


def test_silence_moves_with_the_text() -> None:
    text = "x\n" * 11 + "y = load()  # accelopt: ignore=small-dma\n"
    state = replace(document([small(12, 512, 5)]), ignored=IgnoredFindings.of(text))
    assert diagnostics(state.edit(LineMap.shift(3))) == []


def test_without_all_findings_only_what_makes_a_run_impossible_is_said() -> None:
    missing = Finding("no-problem", 10, "information", "None.")
    state = document([missing, small(14, 512, 5)])
    assert [d.finding.code for d in diagnostics(state, all_findings=False)] == ["no-problem"]


@pytest.mark.parametrize(
    ("line", "silenced"),
    [
        ("    x = load(", "    x = load(  # accelopt: ignore=spills"),
        ("    x = 1  # accelopt: ignore=small-dma", "    x = 1  # accelopt: ignore=small-dma, spills"),
        ("    x = a + \\", None),
        ('    x = """', None),
    ],
)
def test_the_comment_that_a_quick_fix_writes(line: str, silenced: str | None) -> None:
    edit = line_comment([line], 1, "spills")
    after = None if edit is None else line[: edit.start_col] + edit.new_text + line[edit.end_col :]
    assert after == silenced
    if silenced is not None:
        assert IgnoredFindings.of(silenced).rest([Finding("spills", 1, "warning", "")]) == []


def test_the_comment_of_a_file_stands_behind_what_only_the_first_lines_may_say() -> None:
    assert file_comment(["#!/usr/bin/python", "# coding: utf-8", "import x"], "spills").start_line == 2
    assert file_comment(["#!/usr/bin/python"], "spills").start_line == 1
    edit = file_comment(["import x"], "spills")
    assert (edit.start_line, edit.new_text) == (0, "# accelopt: ignore-file=spills\n")


def test_a_missing_package_is_one_information_for_the_file() -> None:
    missing = [Finding("missing-package", line, "error", f"torch {line}") for line in (3, 9)]
    state = document(missing)
    assert [(d.finding.line, d.finding.severity) for d in diagnostics(state)] == [(3, "information")]
