"""Plans tied to lines: which they name, what fills them, and what is caught before anything runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_agent.model.edits import (
    Anchor,
    InvalidAnswerError,
    apply_plan_answer,
    numbered,
    parse_anchors,
    text_with_anchors,
)

FILE = """\
import nki


@nki.jit
def k(x):
    scale = 2
    rows = 128
    for i in range(4):
        a = load(x, i)
        b = a * scale
        store(b)
    return x


def other():
    return 1
"""


@pytest.mark.parametrize(
    ("plan", "anchors"),
    [
        ("LINES 9-10\nLoad once.", (Anchor(9, 10),)),
        ("Lines 9 to 10, and 6: load once", (Anchor(6, 6), Anchor(9, 10))),
        ("line 7 becomes rows = 256, which needs line 9", (Anchor(7, 7),)),
        ("**Lines**: 6, 7\n", (Anchor(6, 7),)),
        ("LINES 8-11, 9-10", (Anchor(8, 11),)),
    ],
)
def test_the_lines_that_a_plan_names_become_anchors(plan: str, anchors: tuple[Anchor, ...]) -> None:
    assert parse_anchors(plan, FILE) == anchors


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ("Make it wider.", "names no lines"),
        ("LINES 9-90", "names lines 9-90 of 16"),
        ("LINES 10-9", "names lines 10-9"),
        ("LINES 0", "names lines 0-0"),
        ("LINES 1, 3, 5, 7, 9, 11, 13", "7 places"),
    ],
)
def test_a_plan_without_ground_is_refused(plan: str, why: str) -> None:
    with pytest.raises(InvalidAnswerError, match=why):
        parse_anchors(plan, FILE)


TWO = (Anchor(6, 6), Anchor(9, 10))
GOOD = "<<<<<<< CHANGE 1\n    scale = 4\n>>>>>>>\n<<<<<<< CHANGE 2\n        b = load(x, i) * scale\n>>>>>>> CHANGE 2"
WANTED = FILE.replace("scale = 2", "scale = 4").replace(
    "        a = load(x, i)\n        b = a * scale\n", "        b = load(x, i) * scale\n"
)


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"Sure:\n```\n{GOOD}\n```",
        GOOD.replace("\n    scale", "\nscale").replace("\n        b", "\nb"),
        GOOD.replace("    scale = 4", "```python\n    scale = 4\n```"),
        "<<<<<<< SEARCH\n    scale = 2\n=======\n    scale = 4\n>>>>>>> REPLACE\n"
        "<<<<<<< SEARCH\n        a = load(x, i)\n        b = a * scale\n=======\n"
        "        b = load(x, i) * scale\n>>>>>>> REPLACE",
    ],
)
def test_every_anchor_is_filled(answer: str) -> None:
    assert apply_plan_answer(FILE, TWO, answer) == WANTED


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("<<<<<<< CHANGE 1\n    scale = 4\n>>>>>>>", "change 2 is left over"),
        (GOOD.replace("scale = 4", "scale = 2"), "change 1 is left as it was"),
        (GOOD + "\n<<<<<<< CHANGE 3\nx\n>>>>>>>", "has a change 3"),
        ("<<<<<<< CHANGE 1\n    scale = 4\n", "ends inside change 1"),
        (GOOD.replace("    scale = 4", "    # <<< change 1\n    scale = 4"), "a mark of a change"),
        ("I would change it.", "holds no edits"),
        (
            "<<<<<<< SEARCH\n    rows = 128\n=======\n    rows = 256\n>>>>>>> REPLACE",
            "reaches out of the planned lines, to line 7",
        ),
        (
            "<<<<<<< SEARCH\n    scale = 2\n=======\n    scale = 4\n>>>>>>> REPLACE",
            "change 2 is left as it was",
        ),
    ],
)
def test_what_is_not_the_plan_is_caught(answer: str, why: str) -> None:
    with pytest.raises(InvalidAnswerError, match=why):
        apply_plan_answer(FILE, TWO, answer)


def test_what_is_shown_has_the_planned_lines_marked() -> None:
    marked = text_with_anchors(FILE, (Anchor(10, 10),))
    assert "# <<< change 1\n        b = a * scale\n# >>> change 1" in marked
    assert [line for line in marked.split("\n") if not line.startswith("# ")] == FILE.split("\n")
    assert numbered(FILE, 6, 7) == "6     scale = 2\n7     rows = 128"


@given(st.text(alphabet="<>CHANGE 12\n\t#abc`=", max_size=200))
def test_no_answer_changes_a_line_outside_the_anchors(answer: str) -> None:
    try:
        text = apply_plan_answer(FILE, TWO, answer)
    except InvalidAnswerError:
        return
    before, after = FILE.split("\n"), text.split("\n")
    assert after[:5] == before[:5]
    assert after[-7:] == before[-7:]
    assert "    rows = 128" in after


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_stay(newline: str) -> None:
    assert apply_plan_answer(FILE.replace("\n", newline), TWO, GOOD) == WANTED.replace("\n", newline)
