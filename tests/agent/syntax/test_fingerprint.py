"""Two rewrites are the same when their syntax is, apart from what only people see."""

from __future__ import annotations

import re

import pytest

from accelopt_agent.syntax.fingerprint import file_fingerprint, rewrite_fingerprint

TEXT = '''\
import triton
import triton.language as tl


@triton.jit
def k(x, n, B: tl.constexpr):
    """What it does."""
    i = tl.arange(0, B)
    value = tl.load(x + i, mask=i < n)
    tl.store(x + i, value, mask=i < n)


def run(x):
    k[(1,)](x, 8, B=8)
'''

SAME = {
    "comment": TEXT.replace("    i =", "    # lanes\n    i ="),
    "layout": TEXT.replace("mask=i < n", "mask=(i<n)"),
    "docstring": TEXT.replace('    """What it does."""\n', ""),
    "local names": TEXT.replace("value", "loaded"),
    "another local name": re.sub(r"\bi\b", "lanes", TEXT),
    "line ends": TEXT.replace("\n", "\r\n"),
}
OTHER = {
    "constant": TEXT.replace("arange(0,", "arange(1,"),
    "parameter": TEXT.replace("n, B:", "m, B:"),
    "launch": TEXT.replace("B=8)", "B=8, num_warps=2)"),
    "function": TEXT.replace("tl.load", "tl.max"),
    "other variable": TEXT.replace("tl.store(x + i, value", "tl.store(x + i, i"),
}


@pytest.mark.parametrize("what", SAME)
def test_what_changes_nothing_makes_no_other_fingerprint(what: str) -> None:
    assert SAME[what] != TEXT
    assert file_fingerprint(SAME[what]) == file_fingerprint(TEXT)


@pytest.mark.parametrize("what", OTHER)
def test_what_changes_something_does(what: str) -> None:
    assert OTHER[what] != TEXT
    assert file_fingerprint(OTHER[what]) != file_fingerprint(TEXT)
    assert rewrite_fingerprint(TEXT, OTHER[what], "k") != rewrite_fingerprint(TEXT, TEXT, "k")


@pytest.mark.parametrize("what", ["constant", "launch", "function"])
def test_a_rewrite_is_known_again_in_a_file_that_changed_elsewhere(what: str) -> None:
    def grown(text: str) -> str:
        return text.replace("def run", "LIMIT = 4\n\n\ndef helper():\n    return LIMIT\n\n\ndef run")

    before = rewrite_fingerprint(TEXT, OTHER[what], "k")
    assert rewrite_fingerprint(grown(TEXT), grown(OTHER[what]), "k") == before


def test_rewrites_of_the_launch_alone_differ() -> None:
    launches = [TEXT.replace("B=8)", f"B=8, num_warps={w})") for w in (1, 2, 4)]
    assert len({rewrite_fingerprint(TEXT, text, "k") for text in launches}) == 3
