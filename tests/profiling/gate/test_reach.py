"""What a rewrite changes and nothing that is checked reaches."""

from __future__ import annotations

import pytest

from accelopt_profiling.gate.reading.reach import unreached_changes

ORIGINAL = """
SCALE = 2.0

def helper(x):
    return x * SCALE

def entry(x):
    return helper(x)

def other(x):
    return x + 1

class Module:
    def forward(self, x):
        return entry(x)

def test_entry():
    assert entry(1) == 2
"""


@pytest.mark.parametrize(
    ("before", "after", "subjects"),
    [
        ("x + 1", "x + 2", ["other"]),
        ("return entry(x)", "return other(x)", ["Module"]),
        ("x * SCALE", "x * SCALE * 1", []),
        ("x + 1", "x + 1  # as before", []),
        ("== 2", "== 3", []),
        ("def other(x):\n    return x + 1\n", "", []),
        ("SCALE = 2.0\n", "SCALE = 2.0\n\ndef new(x):\n    return x\n", []),
    ],
    ids=["a function", "a class", "a callee", "a comment", "a test", "taken away", "added"],
)
def test_changes_beside_the_calls_are_found(before: str, after: str, subjects: list[str]) -> None:
    text = ORIGINAL.replace(before, after, 1)
    assert [f.subject for f in unreached_changes(text, ORIGINAL, {"entry"})] == subjects


@pytest.mark.parametrize(
    "use",
    ["helpers.other(x)", "globals()['other'](x)", "other", "[other][0](x)"],
)
def test_whatever_may_stand_for_a_function_reaches_it(use: str) -> None:
    text = ORIGINAL.replace("x + 1", "x + 2", 1).replace("x * SCALE", f"({use}, x * SCALE)[1]", 1)
    assert list(unreached_changes(text, ORIGINAL, {"entry"})) == []


def test_what_runs_when_the_file_is_imported_is_reached() -> None:
    text = ORIGINAL.replace("x + 1", "x + 2", 1) + "\nTABLE = {'other': other}\n"
    assert list(unreached_changes(text, ORIGINAL, {"entry"})) == []
