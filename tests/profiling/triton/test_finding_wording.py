"""Findings on a launch say what is true of it."""

from __future__ import annotations

import pytest

from accelopt_profiling.triton.check_size import CheckSize
from accelopt_profiling.triton.findings import smaller_check_finding
from accelopt_profiling.triton.hints import line_findings
from accelopt_profiling.triton.interpreter.counting import LaunchCounts, LineCounts


@pytest.mark.parametrize(
    ("masked", "begins"), [(1024, "All lanes are masked off"), (512, "50 % of the lanes are masked off")]
)
def test_a_line_that_does_nothing_is_told_from_one_that_does_half(masked: int, begins: str) -> None:
    counts = LaunchCounts(1, 1, {7: LineCounts(lanes=1024, masked=masked, widest=1024)})
    (finding,) = line_findings(counts)
    assert finding.message.startswith(begins)


def test_lines_with_the_same_share_have_one_finding() -> None:
    lines = {n: LineCounts(lanes=1024, masked=768, widest=1024) for n in (3, 4, 9)}
    (finding,) = line_findings(LaunchCounts(1, 1, {**lines, 5: LineCounts(lanes=1024, widest=1024)}))
    assert finding.line == 3
    assert finding.message.startswith("75 % of the lanes here and on 2 more lines are masked off")
    assert "where a size masks them" in finding.message  # values may


def test_a_single_number_read_in_a_loop_is_not_strided() -> None:
    line = LineCounts(load_bytes=4 * 64, load_sectors=64, lanes=64, widest=1)
    assert line_findings(LaunchCounts(1, 1, {7: line})) == []
    line.widest = 64
    assert [f.code for f in line_findings(LaunchCounts(1, 1, {7: line}))] == ["uncoalesced"]


@pytest.mark.parametrize(
    ("referenced", "checked"),
    [(True, "the result was checked at T=512"), (False, "bounds were checked at T=512")],
)
def test_without_a_reference_no_result_was_checked(referenced: bool, checked: str) -> None:
    finding = smaller_check_finding(CheckSize(537e6, 1, 0.1), "T=512", 3, referenced)
    assert checked in finding.message
    long = smaller_check_finding(CheckSize(1, 172e9, 0.1), "T=512", 3, referenced)
    assert "its launches take 172 Goperations" in long.message  # a reference is not there, or not counted
