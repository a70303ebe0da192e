"""Whether a rewrite reaches a kernel or its launches."""

from __future__ import annotations

import pytest

from accelopt_agent.syntax.kernel_change import kernel_changed

TEXT = """
import triton

@triton.jit
def product(a, B):
    use(a, B)

@triton.jit
def scale(a, B):
    use(a, B)

def entry(x):
    product[(4,)](x, B=64)
    scale[(8,)](x, B=128)
"""


@pytest.mark.parametrize(("before", "after", "expected"), [
    ("B=64", "B=256", False),
    ("B=128", "B=256", True),
    ("(8,)", "(16,)", True),
    ("def scale(a, B):\n    use(a, B)", "def scale(a, B):\n    use(a, B, a)", True),
    ("    scale[(8,)](x, B=128)\n", "", True),
    ("import triton", "import triton  # now", False),
])  # fmt: skip
def test_kernel_changed(before: str, after: str, expected: bool) -> None:
    assert kernel_changed(TEXT, TEXT.replace(before, after), "scale") == expected
