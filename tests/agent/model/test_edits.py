"""The tolerant reader of a coder's answer, the territory it must stay in, and the prompts."""

from __future__ import annotations

import contextlib
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_agent.model.edits import InvalidAnswerError, Replacement, apply_edits, read_edits
from accelopt_agent.model.prompt_templates import fenced, placeholders, render, template
from accelopt_agent.model.team import ROLES
from accelopt_agent.syntax.kernel_change import only_kernel_changed

FILE = """\
import triton


@triton.jit
def k(x, n: tl.constexpr):
    a = 1
    b = 2
    c = a + b


def run(x):
    k[(4,)](x, n=8)
    return x
"""
BLOCK = "<<<<<<< SEARCH\n    b = 2\n=======\n    b = 3\n>>>>>>> REPLACE"
WANTED = FILE.replace("b = 2", "b = 3")


@pytest.mark.parametrize(
    "answer",
    [
        BLOCK,
        f"Here you are:\n\n{BLOCK}\n\nI hope it helps.",
        f"```python\n{BLOCK}\n```",
        f"```\n{BLOCK}\n```\n{BLOCK}",
        "<<<<<<< SEARCH\n```python\n    b = 2\n```\n=======\n```python\n    b = 3\n```\n>>>>>>> REPLACE",
        "<<<<<<< SEARCH\nb = 2\n=======\nb = 3\n>>>>>>> REPLACE",
        BLOCK.replace("\n", "\r\n"),
        BLOCK.replace("b = 2", "b = 2   "),
        BLOCK.replace("<<<<<<< SEARCH", "<<<<<<<< search").replace(">>>>>>> REPLACE", ">>>>>"),
    ],
)
def test_edits_are_found_whatever_stands_around_them(answer: str) -> None:
    assert apply_edits(FILE, read_edits(answer)) == WANTED


def test_line_ends_and_a_missing_final_newline_stay() -> None:
    text = FILE.replace("\n", "\r\n").rstrip("\r\n")
    edits = read_edits(
        BLOCK + "\n<<<<<<< SEARCH\n    return x\n=======\n    y = x\n    return y\n>>>>>>> REPLACE"
    )
    result = apply_edits(text, edits)
    assert result.endswith("    y = x\r\n    return y")
    assert "\n" not in result.replace("\r\n", "")


def test_lines_can_be_removed() -> None:
    assert apply_edits(FILE, read_edits("<<<< SEARCH\n    b = 2\n====\n>>>>")) == FILE.replace(
        "    b = 2\n", ""
    )


@pytest.mark.parametrize(
    ("search", "says"),
    [("    z = 2", "not in the file"), ("", "which lines"), ("    a = 1\n    c = a + b", "not in")],
)
def test_edits_that_do_not_fit_are_refused(search: str, says: str) -> None:
    with pytest.raises(InvalidAnswerError, match=says):
        apply_edits(FILE, [Replacement(tuple(search.split("\n")), ("x",))])


def test_an_edit_that_fits_twice_is_refused() -> None:
    with pytest.raises(InvalidAnswerError, match="2 places"):
        apply_edits("a = 1\nb = 2\na = 1\n", [Replacement(("a = 1",), ("a = 2",))])


@given(st.text(alphabet="<=>ab \n`SEARCHREPLACE", max_size=200))
def test_garbage_is_an_answer_without_edits_and_never_a_crash(answer: str) -> None:
    try:
        edits = read_edits(answer)
    except InvalidAnswerError:
        return
    assert edits
    with contextlib.suppress(InvalidAnswerError):
        assert apply_edits(FILE, edits) != FILE or all(e.search == e.replace for e in edits)


code_line = st.text(alphabet="ab =+()[]:#'\"", min_size=1, max_size=12).map(lambda s: f"x{s}".rstrip())


@given(
    st.lists(code_line, min_size=1, max_size=8, unique=True),
    st.lists(code_line, max_size=3),
    st.data(),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_a_well_formed_block_replaces_exactly_its_lines(
    lines: list[str], new: list[str], data: st.DataObject, newline: str, fence: bool
) -> None:
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first + 1, len(lines)))
    block = ["<<<<<<< SEARCH", *lines[first:last], "=======", *new, ">>>>>>> REPLACE"]
    answer = "\n".join(["Here it is:", "```python", *block, "```"] if fence else block)
    text = newline.join([*lines, ""])
    result = apply_edits(text, read_edits(answer))
    assert result == newline.join([*lines[:first], *new, *lines[last:], ""])


@pytest.mark.parametrize(
    ("old", "new", "inside"),
    [
        ("b = 2", "b = 3", True),
        ("n=8)", "n=16, num_warps=8)", True),
        ("(4,)", "(8,)", True),
        ("@triton.jit", "@triton.jit(debug=False)", True),
        ("import triton\n", "import triton  # a comment\n", True),
        ("return x", "return x * 2", False),
        ("import triton\n", "import triton\nimport os\n", False),
        ("k[(4,)](x,", "k[(4,)](x * 0,", False),
        ("    k[(4,)](x, n=8)\n", "", False),
        ("def k(x, n", "def k(x, m, n", False),
        ("def k(", "def kk(", False),
    ],
)
def test_only_the_kernel_and_its_launch_may_change(old: str, new: str, inside: bool) -> None:
    changed = FILE.replace(old, new)
    assert changed != FILE
    assert only_kernel_changed(FILE, changed, "k") == inside


def prompt_names() -> list[str]:
    folder = Path(str(resources.files("accelopt_agent.model").joinpath("prompts")))
    return sorted(p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.md"))


@pytest.mark.parametrize("name", prompt_names())
def test_every_prompt_renders_without_an_unfilled_place(name: str) -> None:
    values = {key: f"the value of {key}" for key in placeholders(name)}
    text = render(name, **values)
    assert all(value in text for value in values.values())
    assert "{" not in text
    assert "}" not in text
    with pytest.raises(ValueError):
        render(name, **values, surplus="x")
    if values:
        with pytest.raises(ValueError):
            render(name, **dict(list(values.items())[1:]))


def test_every_role_has_a_prompt_for_each_dialect_and_for_each_question() -> None:
    of_roles = {f"{dialect}/{role}" for dialect in ("nki", "triton") for role in ROLES}
    questions = {f"{role}_user" for role in ROLES} | {
        "debugger_answer_user",
        "planner_again_user",
        "coder_rewrite_user",
        "alone",
        "triton/first_kernel",
        "first_kernel_user",
        "first_kernel_again_user",
    }
    questions |= {"first_kernel_user", "first_kernel_again_user", "triton/first_kernel"}
    assert set(prompt_names()) == of_roles | questions
    for name in of_roles:
        assert "no instructions to you" in template(name)


@given(st.text(alphabet="`a\n"))
def test_no_text_ends_its_own_block(text: str) -> None:
    first, *inner, last = fenced(text).split("\n")
    assert last == first.removesuffix("python")
    assert last not in inner
