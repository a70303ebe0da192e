"""What a rule adds to a list that is written one item to a line gets a line of its own; what it takes away leaves the
comments, and the layout of the rest."""

from __future__ import annotations

import ast
import re

import pytest
from support.rule_texts import TEXTS, rewrites

from accelopt_agent.rules import catalogue
from accelopt_agent.rules.analysis.edits import apply_edits
from accelopt_agent.rules.analysis.parsed_source import ParsedSource
from accelopt_agent.rules.analysis.rule_context import open_context
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_profiling.kernels import find_kernels

TALL = """import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr,
    out_ptr,
    n,
    BLOCK: tl.constexpr{after}
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(
        x_ptr + offsets,
        mask=offsets < n,
        other=0)
    tl.store(out_ptr + offsets, x, mask=(offsets < n) & (x > 0))


def run(x, out, n):
    kernel[(triton.cdiv(n, 256),)](
        x,
        out,
        n,  # elements
        BLOCK=256{behind}
        num_warps=4{after}
    )
"""

TUNED = """import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({{"BLOCK": 256}}, num_warps=4),
        triton.Config({{"BLOCK": 512}}, num_warps=4){after}
    ],
    key=["n"],
)
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
"""

#: What may stand behind the last item of a list, and what stands there once another follows.
ENDS = {
    "": ("", ""),
    ",": (",", ""),
    "  # the last": (",  # the last", ""),
    ",  # the last": (",  # the last", ""),
}


def candidates(rule: str, text: str) -> dict[str, str]:
    (kernel,) = find_kernels(text).kernels
    texts = {c.summary: c.text for c in catalogue.apply(rule, text, kernel)}
    for changed in texts.values():
        ast.parse(changed)
    return texts


def opened(text: str) -> TritonKernel:
    return TritonKernel(open_context(ParsedSource(text), find_kernels(text).kernels[0]))


def without_keywords(text: str, *names: str) -> str:
    kernel = opened(text)
    (launch,) = kernel.launches
    gone = [arg for arg in launch.call.args if arg.keyword is not None and arg.keyword.value in names]
    edits = kernel.source.removed(gone, launch.call.args)
    return apply_edits(kernel.source.data, edits, kernel.source.newline).decode()


def end_of_new_item(after: str) -> str:
    return "," if after.startswith(",") else ""


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("after", ENDS)
def test_a_parameter_gets_a_line_of_its_own(after: str, newline: str) -> None:
    kernel = opened(TALL.format(after=after, behind=",").replace("\n", newline))
    changed = apply_edits(
        kernel.source.data, kernel.declared(["EVEN_N"], "1"), kernel.source.newline
    ).decode()
    declared = f"    BLOCK: tl.constexpr{ENDS[after][0] or ','}\n    EVEN_N: tl.constexpr{end_of_new_item(after)}\n):"
    assert declared.replace("\n", newline) in changed


@pytest.mark.parametrize("after", ENDS)
def test_a_launch_option_gets_a_line_of_its_own(after: str) -> None:
    text = TALL.format(after=after, behind=",").replace("        num_warps=4", "        num_ctas=1")
    (changed, _) = candidates("triton-num-warps", text).values()
    assert (
        f"        num_ctas=1{ENDS[after][0] or ','}\n        num_warps=8{end_of_new_item(after)}\n" in changed
    )


def test_an_argument_before_the_closing_parenthesis_gets_a_line_of_its_own() -> None:
    text = TALL.format(after="", behind=",").replace(",\n        num_warps=4\n    )", ")")
    (changed, _) = candidates("triton-num-warps", text).values()
    assert "        BLOCK=256,\n        num_warps=8)\n" in changed


@pytest.mark.parametrize("after", ENDS)
def test_a_config_gets_a_line_of_its_own_and_its_summary_tells_which_one_it_is(after: str) -> None:
    texts = candidates("triton-num-warps", TUNED.format(after=after))
    changed = texts["Let the autotuner try BLOCK=512 with num_warps=8 as well."]
    lines = [
        f'        triton.Config({{"BLOCK": 512}}, num_warps=4){ENDS[after][0] or ","}\n',
        f'        triton.Config({{"BLOCK": 512}}, num_warps=8){end_of_new_item(after)}\n    ],',
    ]
    assert "".join(lines) in changed
    assert "Let the autotuner try BLOCK=256 with num_warps=2 as well." in texts


def test_what_is_taken_out_of_a_launch_leaves_its_comments_and_the_other_lines() -> None:
    text = TALL.format(after=",  # enough", behind=",  # of each program")
    changed = without_keywords(text, "BLOCK", "num_warps")
    launch = changed[changed.index("kernel[") :]
    assert "        n,  # elements\n" in launch
    assert launch.count("# of each program") == launch.count("# enough") == 1
    assert "BLOCK=256" not in launch
    assert "num_warps" not in launch
    row = TALL.format(after="", behind=", num_stages_of_mine=1,")
    changed = without_keywords(row, "BLOCK", "num_warps")
    assert "        n,  # elements\n        num_stages_of_mine=1" in changed


def steps(text: str) -> set[int]:
    """Return by how many blanks a block is deeper than what it belongs to."""
    return {
        child.col_offset - parent.col_offset
        for parent in ast.walk(ast.parse(text))
        if isinstance(parent, (ast.FunctionDef, ast.For, ast.If, ast.With, ast.While))
        for child in parent.body
        if child.lineno > parent.lineno
    }


@pytest.mark.parametrize("case", TEXTS)
def test_a_block_that_a_rule_writes_is_as_deep_as_those_of_the_file(case: str) -> None:
    rule, text = TEXTS[case]
    narrow = re.sub(r"^ +", lambda blanks: blanks[0][: len(blanks[0]) // 2], text, flags=re.MULTILINE)
    assert steps(narrow) == {2}
    for changed in rewrites(rule, narrow):
        assert steps(changed) == {2}, changed
