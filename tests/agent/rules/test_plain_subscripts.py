"""Rules see indices that a kernel keeps in variables: each spelling of one kernel is rewritten alike."""

from __future__ import annotations

import libcst as cst
import pytest

from accelopt_agent.rules import catalogue
from accelopt_agent.rules.analysis.nki.plain_subscripts import plain_subscripts, without_gaps
from accelopt_agent.rules.analysis.parsed_source import ParsedSource
from accelopt_agent.rules.analysis.rule_context import open_context
from accelopt_profiling.kernels import find_kernels
from nkibench.task import tasks

BASELINE = tasks()["silu"].kernel("nki").read_text(encoding="utf-8")
INDEX = "[nl.ds(i * ROWS, ROWS), nl.ds(j * COLUMNS, COLUMNS)]"
FIRST = "            tile = nl.ndarray"

#: What binds the indices, and what stands in the brackets.
SPELLINGS = {
    "a tuple": ("block = nl.ds(i * ROWS, ROWS), nl.ds(j * COLUMNS, COLUMNS)", "[block]"),
    "ranges": ("r = nl.ds(i * ROWS, ROWS)\nc = nl.ds(j * COLUMNS, COLUMNS)", "[r, c]"),
    "two names": ("r, c = nl.ds(i * ROWS, ROWS), nl.ds(j * COLUMNS, COLUMNS)", "[r, c]"),
    "starts": ("top, left = i * ROWS, j * COLUMNS", "[nl.ds(top, ROWS), nl.ds(left, COLUMNS)]"),
    "slices": (
        "b = (slice(i * ROWS, (i + 1) * ROWS), slice(j * COLUMNS, (j + 1) * COLUMNS))",
        "[b]",
    ),
}


def spelled(lines: str, index: str) -> str:
    bound = "".join(f"            {line}\n" for line in lines.splitlines())
    return BASELINE.replace(FIRST, bound + FIRST, 1).replace(INDEX, index)


def rules_for(text: str) -> set[str]:
    (kernel,) = find_kernels(text).kernels
    return {c.origin for c in catalogue.proposals(text, kernel, strict=True)}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_kernel_with_named_indices_gets_the_rewrites_of_one_without(spelling: str) -> None:
    assert rules_for(spelled(*SPELLINGS[spelling])) == rules_for(BASELINE)


def written_out(text: str) -> str | None:
    (kernel,) = find_kernels(text).kernels
    source = plain_subscripts(open_context(ParsedSource(text), kernel))
    return None if source is None else source.text


def test_a_variable_goes_with_its_last_use_and_lines_stay() -> None:
    text = spelled(*SPELLINGS["a tuple"])
    plain = written_out(text)
    assert plain is not None
    assert "block" not in plain
    assert plain.count("\n") == text.count("\n")
    assert without_gaps(plain) == BASELINE


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_rewrite_leaves_no_line_empty_where_a_variable_was(spelling: str, newline: str) -> None:
    def made(text: str) -> list[tuple[str, str]]:
        (kernel,) = find_kernels(text).kernels
        return [(c.origin, c.text) for c in catalogue.proposals(text, kernel, strict=True)]

    rewrites = made(spelled(*SPELLINGS[spelling]).replace("\n", newline))
    gaps = sorted((origin, text.count(newline * 2)) for origin, text in rewrites)
    assert gaps == sorted((origin, text.count("\n\n")) for origin, text in made(BASELINE))
    assert not any("\f" in text for _, text in rewrites)


@pytest.mark.parametrize(
    "change",
    [
        (
            "            power = nl.ndarray",
            "            i = 0\n            power = nl.ndarray",
        ),  # an index changes
        ("            power = nl.ndarray", "            block = other()\n            power = nl.ndarray"),
        ("block = nl.ds(i * ROWS, ROWS)", "block = next(starts)"),  # not the same at each place
    ],
)
def test_what_may_change_before_its_use_is_left(change: tuple[str, str]) -> None:
    text = spelled(*SPELLINGS["a tuple"])
    assert change[0] in text
    assert written_out(text.replace(*change, 1)) is None


def test_a_use_that_is_no_index_keeps_the_variable() -> None:
    text = spelled(*SPELLINGS["a tuple"]).replace(
        "            power = ", "            print(block)\n            power = ", 1
    )
    plain = written_out(text)
    assert plain is not None
    assert "            block = nl.ds" in plain
    assert "out[nl.ds(" in plain
    cst.parse_module(plain)
