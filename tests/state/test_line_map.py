"""Where lines go when text is edited: compared with what happened to the text itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as t

from accelopt_lsp.demo.editor import edited_text
from accelopt_lsp.server.convert import text_changes
from accelopt_lsp.state.line_map import LineMap, move_findings, move_measurement
from accelopt_profiling.measurement import Finding, KernelMeasurement, LineCost


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> t.TextDocumentContentChangePartial:
    span = t.Range(t.Position(*start), t.Position(*end))
    return t.TextDocumentContentChangePartial(range=span, text=text)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, list[t.TextDocumentContentChangePartial]]:
    """A text of lines that are all different, and changes to it as an editor sends them, one after another."""
    text = "".join(f"line {i}\n" for i in range(draw(st.integers(1, 8))))
    now, changes = text, []
    for _ in range(draw(st.integers(1, 3))):
        lines = now.split("\n")
        first = draw(st.integers(0, len(lines) - 1))
        last = draw(st.integers(first, len(lines) - 1))
        column = draw(st.integers(0, len(lines[first])))
        end = draw(st.integers(column if first == last else 0, len(lines[last])))
        new = draw(st.sampled_from(["", "x", "\n", "x\n", "x\ny\n", "x\ny"]))
        edit = change((first, column), (last, end), new)
        changes.append(edit)
        now = edited_text(now, [t.TextEdit(edit.range, new)])
    return text, changes


def after(text: str, changes: list[t.TextDocumentContentChangePartial]) -> str:
    for edit in changes:
        text = edited_text(text, [t.TextEdit(edit.range, edit.text)])
    return text


@given(edits())
def test_an_untouched_line_goes_where_its_text_went(
    case: tuple[str, list[t.TextDocumentContentChangePartial]],
) -> None:
    text, changes = case
    moved, now = LineMap.of(text_changes(changes)), after(text, changes).split("\n")
    for number, line in enumerate(text.split("\n")[:-1], 1):
        if not moved.touches(number, number):
            assert now[moved.line(number) - 1] == line


@given(edits())
def test_a_line_whose_text_is_gone_was_touched(
    case: tuple[str, list[t.TextDocumentContentChangePartial]],
) -> None:
    text, changes = case
    moved, now = LineMap.of(text_changes(changes)), set(after(text, changes).split("\n"))
    for number, line in enumerate(text.split("\n")[:-1], 1):
        if line not in now:
            assert moved.touches(number, number)


@pytest.mark.parametrize(
    ("edit", "touched"),
    [
        (change((4, 0), (4, 0), "new\n"), False),  # a line put in before the first one
        (change((5, 0), (5, 0), "new\n"), True),
        (change((8, 0), (8, 0), "new\n"), False),  # a line put in after the last one
        (change((7, 3), (7, 3), "x"), True),
        (change((0, 0), (2, 0), ""), False),
        (change((3, 2), (4, 1), ""), True),
    ],
)
def test_touching_lines_5_to_8(edit: t.TextDocumentContentChangePartial, touched: bool) -> None:
    assert LineMap.of(text_changes([edit])).touches(5, 8) is touched


@given(edits())
def test_where_no_line_moves_nothing_is_copied(
    case: tuple[str, list[t.TextDocumentContentChangePartial]],
) -> None:
    text, changes = case
    moved = LineMap.of(text_changes(changes))
    result = KernelMeasurement("k", 1, "nki", "trn1", "local", lines=[LineCost(3, "on line 4")])
    same = all(moved.line(number) == number for number in range(1, text.count("\n") + 2))
    assert same or moved.moves_lines
    assert moved.moves_lines or move_measurement(result, moved) is result


def test_a_whole_new_text_touches_everything() -> None:
    assert LineMap.of(text_changes([t.TextDocumentContentChangeWholeDocument("x")])).touches(1, 1)


def test_lines_that_a_text_names_move_with_the_code() -> None:
    moved = LineMap.of(text_changes([change((0, 0), (0, 0), "# two\n# lines\n")]))
    waits = LineCost(7, "VectorE waits 4.79 us for line 64 (TensorE); 12 % of 3 lines")
    finding = Finding("capacity", 3, "error", "A tile (made on line 9) is read; a/b.py, line 17: it fails.")
    result = KernelMeasurement("k", 1, "nki", "trn1", "local", lines=[waits], findings=[finding])
    (cost,), (moved_finding,) = (m := move_measurement(result, moved)).lines, m.findings
    assert (cost.line, cost.text) == (9, "VectorE waits 4.79 us for line 66 (TensorE); 12 % of 3 lines")
    assert (moved_finding.line, moved_finding.message) == (
        5,
        "A tile (made on line 11) is read; a/b.py, line 17: it fails.",
    )
    assert move_findings([finding], LineMap()) == [finding]
