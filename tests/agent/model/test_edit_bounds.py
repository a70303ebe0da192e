"""What a model may change of a file: all that the entry reaches, and nothing else."""

from __future__ import annotations

import pytest

from accelopt_agent.model.edit_bounds import beyond_bounds, bounds_of
from accelopt_agent.model.edits import InvalidAnswerError
from accelopt_agent.model.plan import Plan, apply_answer, parse_plan
from accelopt_profiling.problems.ref import ProblemRef

FILE = """\
import torch
import triton
import triton.language as tl

BLOCK = 64
SEEDS = 3


@triton.jit
def scores(x, y, n, BLOCK: tl.constexpr):
    tl.store(y, tl.load(x) + n)


@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    tl.store(y, tl.load(x) * n)


@triton.jit
def backward(x, y):
    tl.store(y, tl.load(x))


def grid_of(n):
    return (triton.cdiv(n, BLOCK),)


def attention(x):
    y = torch.empty_like(x)
    scores[grid_of(x.numel())](x, y, 1, BLOCK=BLOCK)
    rows[grid_of(x.numel())](y, y, 2, BLOCK=BLOCK)
    return y


def get_inputs():
    torch.manual_seed(SEEDS)
    return (torch.rand(64),)


def reference(x):
    return x


def bench():
    return attention(get_inputs()[0])
"""
BOUNDS = bounds_of(FILE, "scores", ProblemRef("module"))
FLASH = """\
@triton.jit
def flash(x, y, n, BLOCK: tl.constexpr):
    tl.store(y, (tl.load(x) + 1) * n)


def attention(x):
    y = torch.empty_like(x)
    flash[grid_of(x.numel())](x, y, 2, BLOCK=BLOCK)
    return y
"""


def test_the_entry_and_the_problem_are_known_by_syntax() -> None:
    assert BOUNDS.entries == {"attention"}
    assert BOUNDS.problem == {"get_inputs", "reference"}
    beside = bounds_of(
        FILE, "rows", ProblemRef("module", "p.py"), ["from k import attention\nentry = attention\n"]
    )
    assert beside.entries == {"attention"}
    assert bounds_of("import nki\n\n@nki.jit\ndef k(x):\n    return x\n", "k").entries == {"k"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("+ n)", "- n)", None),
        ("BLOCK = 64", "BLOCK = 128", None),
        ("BLOCK = 64", "BLOCK = tl.constexpr(128)\nSTAGES = 2", None),
        ("cdiv(n, BLOCK)", "cdiv(n, 2 * BLOCK)", None),
        ("import torch\n", "import torch\nfrom triton.language import math\n", None),
        ("def scores(x, y, n, ", "def scores(x, y, m, n, ", None),
        (
            "@triton.jit\ndef scores",
            "@triton.autotune([triton.Config({'BLOCK': b}) for b in (64, 128)], key=['n'])\n@triton.jit\ndef scores",
            None,
        ),
        ("def attention(x)", "def attention(x, y=None)", "signature of attention"),
        ("def attention(x)", "def other(x)", "attention, which the problem calls, is gone"),
        ("SEEDS = 3", "SEEDS = 4", "the problem's own code changed: SEEDS"),
        ("    return x\n\n\ndef bench", "    return x + 0\n\n\ndef bench", "own code changed: reference"),
        ("tl.store(y, tl.load(x))", "tl.store(y, tl.load(x) + 0)", "backward changed, which the problem does not run"),
        ("import torch\n", "import torch\nimport os\n", "os is imported"),
        ("BLOCK = 64", "BLOCK = open('x')", "open would be called"),
        ("BLOCK = 64", "BLOCK = 64\ntorch.manual_seed(0)", "what happens when the file is imported"),
        ("BLOCK = 64", "BLOCK = 64\n\n\nclass Key:\n    pass\n", "new class"),
    ],
)  # fmt: skip
def test_only_what_the_entry_reaches_may_change(old: str, new: str, why: str | None) -> None:
    changed = FILE.replace(old, new)
    assert changed != FILE
    beyond = beyond_bounds(BOUNDS, FILE, changed)
    assert (beyond is None) if why is None else (beyond is not None and why in beyond), beyond


def test_one_kernel_takes_the_place_of_two_and_what_nothing_uses_goes() -> None:
    plan = parse_plan("REWRITE scores, rows, attention\nOne kernel does both.", FILE, BOUNDS)
    assert plan.rewrites == ("scores", "rows", "attention")
    new_text = apply_answer(FILE, plan, f"Here it is:\n```python\n{FLASH}```\n", BOUNDS)
    assert beyond_bounds(BOUNDS, FILE, new_text) is None
    assert "def flash" in new_text
    assert "def scores" not in new_text
    assert "def rows" not in new_text
    assert "def backward" in new_text  # the problem does not run it


def test_a_whole_file_is_read_and_compared_with_the_base() -> None:
    whole = FILE.replace("+ n)", "+ 2 * n)").replace("import triton\n", "import triton\n\n")
    assert apply_answer(FILE, Plan("REWRITE FILE"), f"```python\n{whole}```", BOUNDS) == whole


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ("REWRITE backward\nFaster.", "backward may not change: the problem does not run it"),
        ("REWRITE reference\nFaster.", "reference may not change: it is the problem's own code"),
        ("REWRITE softmax\nFaster.", "which the file does not have"),
        ("LINES 36-37\nSmaller inputs.", "line 36 may not change: get_inputs is the problem's own code"),
    ],
)
def test_a_plan_beyond_the_bounds_is_refused_before_a_coder_is_asked(plan: str, why: str) -> None:
    with pytest.raises(InvalidAnswerError, match=why):
        parse_plan(plan, FILE, BOUNDS)


@pytest.mark.parametrize("answer", ["No.", "```python\nx = \n```", "```\n1 + 1\n```"])
def test_an_answer_without_code_is_refused(answer: str) -> None:
    with pytest.raises(InvalidAnswerError):
        apply_answer(FILE, Plan("REWRITE scores", (), ("scores",)), answer, BOUNDS)
