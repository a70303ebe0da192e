"""The entry point that a problem names, checked by syntax against the kernel file."""

from __future__ import annotations

import pytest

from accelopt_profiling.problems.discovery.entry import check_entry
from accelopt_profiling.problems.problem import ProblemError

KERNEL = """\
import triton

@triton.jit
def kernel(x, n):
    pass

def run(x):
    kernel[(1,)](x, 1)

def pair(x, y, *, scale=1.0):
    kernel[(1,)](x, 1)

class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return run(x)
"""


@pytest.mark.parametrize(
    ("more", "name", "count"),
    [
        ("", "run", 1),
        ("", "pair", 2),
        ("", "kernel", 2),
        ("", "Function.apply", 7),
        ("apply = Function.apply\n", "apply", 7),
        ("first, second = run, pair\n", "second", 3),
        ("if True:\n    def late(x): pass\n", "late", 1),
        ("with open('x') as f:\n    def inside(x): pass\n", "inside", 1),
        ("for name in 'ab':\n    pass\n", "name", None),
        ("from other import run as elsewhere\n", "elsewhere", 3),
        ("@wrap\ndef wrapped(x): pass\n", "wrapped", 5),
        ("def many(*xs): pass\n", "many", 5),
        ("", "run", None),
        ("from other import *\n", "anything", 1),
        ("globals()['made'] = run\n", "made", 1),
        ("def __getattr__(name): return run\n", "made", 1),
        ("def make():\n    global made\n    made = run\n", "made", 1),
    ],
)
def test_an_entry_that_may_be_there_is_let_pass(more: str, name: str, count: int | None) -> None:
    check_entry(KERNEL + more, name, count, "k.py", "p.py")


@pytest.mark.parametrize(
    ("more", "name", "count", "message"),
    [
        (
            "",
            "gone",
            1,
            "`gone`, which k.py does not define; it has `run`, `pair`, `Function.apply`, `kernel`",
        ),
        ("def outer():\n    def inner(x): pass\n", "inner", 1, "`inner`"),
        ("", "forward", 1, "`forward`"),
        ("", "run", 2, "2 inputs, but its entry `run` in k.py takes other arguments: `run(x)`"),
        ("", "pair", 1, "1 input, but its entry `pair`"),
        ("", "kernel", 1, "`kernel(x, n)`"),
        ("def only(*, x): pass\n", "only", 1, "`only(*, x)`"),
    ],
)
def test_an_entry_that_cannot_be_called_is_the_problems_fault(
    more: str, name: str, count: int, message: str
) -> None:
    with pytest.raises(ProblemError) as raised:
        check_entry(KERNEL + more, name, count, "k.py", "p.py")
    assert message in raised.value.message
    assert (raised.value.code, raised.value.file) == ("problem-invalid", "p.py")
