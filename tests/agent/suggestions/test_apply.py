"""A suggestion is applied to the text as it is now: wherever the kernel is, and only if it still fits."""

from __future__ import annotations

import ast
import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_agent.suggestions.apply import edits_for
from accelopt_agent.suggestions.suggestion import Speedup, Suggestion
from accelopt_agent.suggestions.text_edit import ApplyRefusal, TextEdit, apply_to_text
from accelopt_agent.syntax.lines import split_lines
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

IMPORTS = "import triton\nimport triton.language as tl\n"
KERNEL = """\
@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    # one block per program
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n

    value = tl.load(x + offsets, mask=mask)
    tl.store(y + offsets, value * 2.0, mask=mask)
"""
LAUNCH = """\
def run(x, y):
    n = x.numel()
    scale[(n // 128,)](
        x,
        y,
        n,
        BLOCK=128,
    )
    return y
"""
OTHER = "def other():\n    return 1\n"
BASE = f"{IMPORTS}\n\n{KERNEL}\n\n{LAUNCH}\n\n{OTHER}"
FAST_KERNEL = KERNEL.replace("    mask = offsets < n\n\n", "").replace(", mask=mask", "")


def suggest(base: str, fast: str, kernel: str = "scale") -> Suggestion:
    kernels = {k.name: k for k in find_kernels(base).kernels}
    diff = "".join(difflib.unified_diff(base.splitlines(True), fast.splitlines(True)))
    latency = Latency(10.0, 8.0, 12.0, Known.ESTIMATED)
    return Suggestion(
        "s1", "r1", "k.py", kernel, "triton", kernels[kernel].content_hash, base, fast, diff, "rule:x", "up",
        Speedup(2.0, 1.8, 2.2, Known.ESTIMATED), latency, latency, Verdict(True), "h100", "local",
    )  # fmt: skip


FAST = BASE.replace(KERNEL, FAST_KERNEL)
ONLY_KERNEL = suggest(BASE, FAST)
WITH_LAUNCH = suggest(
    BASE, BASE.replace(KERNEL, FAST_KERNEL).replace("BLOCK=128,", "BLOCK=128,\n        num_warps=8,")
)
WITH_IMPORT = suggest(BASE, FAST.replace(IMPORTS, IMPORTS + "import math\n"))


def applied(current: str, suggestion: Suggestion) -> str:
    edits = edits_for(current, suggestion)
    assert not isinstance(edits, ApplyRefusal), edits.reason
    return apply_to_text(current, edits)


def test_the_unchanged_file_becomes_the_suggested_one() -> None:
    for suggestion in (ONLY_KERNEL, WITH_LAUNCH, WITH_IMPORT):
        assert applied(BASE, suggestion) == suggestion.text


def test_edits_touch_only_the_changed_lines() -> None:
    edits = edits_for(BASE, ONLY_KERNEL)
    assert not isinstance(edits, ApplyRefusal)
    touched = {line for e in edits for line in range(e.start_line, e.end_line)}
    lines = BASE.split("\n")
    assert {lines[i] for i in touched} == {
        "    mask = offsets < n", "", "    value = tl.load(x + offsets, mask=mask)",
        "    tl.store(y + offsets, value * 2.0, mask=mask)",
    }  # fmt: skip


chunks = st.sampled_from(
    ["# a comment\n", "\n", "LIMIT = 3\n", "def helper(a):\n    return a\n", "import os\n",
     "class C:\n    def run(self):\n        pass\n", '"""text\nmore"""\n', "é = '\u2028'\n"]
)  # fmt: skip
piles = st.lists(chunks, max_size=4).map("".join)


@pytest.mark.slow
@given(
    piles,
    piles,
    piles,
    st.permutations([KERNEL, LAUNCH, OTHER]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from([ONLY_KERNEL, WITH_LAUNCH, WITH_IMPORT]),
)
def test_other_code_may_change_and_the_kernel_may_move(
    above: str, between: str, below: str, order: list[str], newline: str, final: bool, suggestion: Suggestion
) -> None:
    current = IMPORTS + above + f"\n{between}\n".join(order) + below
    current = current if final else current.rstrip("\n")
    current = current.replace("\n", newline)
    result = applied(current, suggestion)
    lines = split_lines(result)
    assert set(lines.ends) <= {newline, ""}
    assert result.endswith(newline) == current.endswith(newline)
    hashes = {k.name: k.content_hash for k in find_kernels(suggestion.text).kernels}
    assert {k.name: k.content_hash for k in find_kernels(result).kernels} == hashes
    rest = ast.dump(ast.parse(current.replace(KERNEL.replace("\n", newline), "")))
    if suggestion is ONLY_KERNEL and KERNEL.replace("\n", newline) in current:
        assert ast.dump(ast.parse(result.replace(FAST_KERNEL.replace("\n", newline), ""))) == rest
    assert ("num_warps=8" in result) == (suggestion is WITH_LAUNCH)
    assert result.count("import math") == (suggestion is WITH_IMPORT)


@given(st.integers(0, 7), st.sampled_from(["    # why\n", "\n"]))
def test_comments_and_blank_lines_in_the_kernel_are_kept(at: int, added: str) -> None:
    lines = KERNEL.splitlines(keepends=True)
    changed = "".join([*lines[: at + 2], added, *lines[at + 2 :]])
    current = BASE.replace(KERNEL, changed)
    edits = edits_for(current, ONLY_KERNEL)
    assert not isinstance(edits, ApplyRefusal), edits.reason
    result = apply_to_text(current, edits)
    hashes = {k.content_hash for k in find_kernels(result).kernels}
    assert hashes == {k.content_hash for k in find_kernels(ONLY_KERNEL.text).kernels}
    assert result.count("# why") == current.count("# why")


@pytest.mark.parametrize(
    ("current", "suggestion", "says"),
    [
        (BASE.replace("value * 2.0", "value * 3.0"), ONLY_KERNEL, "scale has changed"),
        (BASE.replace("def scale", "def scaled"), ONLY_KERNEL, "no longer in the file"),
        (BASE + "\ndef broken(:\n", ONLY_KERNEL, "does not parse"),
        (BASE.replace("        BLOCK=128,\n", "        BLOCK=128, num_stages=2,\n"), WITH_LAUNCH, "run"),
        (BASE.replace("    scale[(n // 128,)](\n", "    scale[(n // 64,)](\n"), WITH_LAUNCH, "run"),
        (BASE.replace(LAUNCH, ""), WITH_LAUNCH, "run"),
        (BASE.replace(KERNEL, KERNEL + "\n\n" + KERNEL.replace("2.0", "4.0")), ONLY_KERNEL, None),
    ],
)
def test_what_no_longer_fits_is_refused_with_the_reason(
    current: str, suggestion: Suggestion, says: str | None
) -> None:
    edits = edits_for(current, suggestion)
    if says is None:
        assert not isinstance(edits, ApplyRefusal)
    else:
        assert isinstance(edits, ApplyRefusal)
        assert says in edits.reason


def test_a_changed_launch_does_not_hinder_a_suggestion_that_leaves_it_alone() -> None:
    assert "BLOCK=64" in applied(BASE.replace("BLOCK=128", "BLOCK=64"), ONLY_KERNEL)


def test_an_import_that_is_there_already_is_not_added_again() -> None:
    assert applied(BASE.replace(IMPORTS, "import math\n" + IMPORTS), WITH_IMPORT).count("import math") == 1


def test_overlapping_and_outlying_edits_are_errors() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_to_text("ab\n", [TextEdit(0, 0, 0, 2, "x"), TextEdit(0, 1, 0, 2, "y")])
    with pytest.raises(ValueError, match="outside"):
        apply_to_text("ab\n", [TextEdit(0, 3, 0, 3, "x")])


@given(st.text(alphabet="ab \r\n\f\u2028é"))
def test_lines_join_to_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(a + b for a, b in zip(lines.texts, lines.ends, strict=True)) == text


def test_a_text_is_split_once_for_all_that_is_asked_about_it() -> None:
    text = "a\r\nb\n" * 3
    assert split_lines(text) is split_lines(text)
