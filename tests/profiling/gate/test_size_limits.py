"""Numbers that a candidate compares sizes with, and the sizes beyond them."""

from __future__ import annotations

import pytest

from accelopt_profiling.gate.probes.sizes import shapes_beyond
from accelopt_profiling.gate.reading.read import limits_of_sizes

FILE = """
import torch, triton
import triton.language as tl

PLENTY = 1 << 14

@triton.heuristics({"WIDE": lambda given: given["n"] > 2 * 1000})
@triton.jit
def kernel(x, n, WIDE: tl.constexpr):
    if n > 300:
        tl.store(x, 1)

def double(x):
    assert x.numel() < 77
    if x.numel() > 99:
        raise ValueError
    HERE
    kernel[(1,)](x, x.numel())
"""


@pytest.mark.parametrize(
    ("line", "limits"),
    [
        ("rows = 4", [300, 2000]),
        ("rows = 1 if x.shape[0] >= PLENTY else 2", [300, 2000, 16384]),
        ("rows = 1 if 2**5 < x.shape[0] else 2", [32, 300, 2000]),
        ("rows = 1 if x.shape[0] > 3 else 2", [300, 2000]),
        ("rows = 1 if x.shape[0] == 500 else 2", [300, 2000]),
        ("rows = 1 if 5 < 100 else 2", [300, 2000]),
    ],
)
def test_what_sizes_are_compared_with(line: str, limits: list[int]) -> None:
    assert limits_of_sizes(FILE.replace("HERE", line)) == limits


def test_what_the_original_compares_too_is_no_limit_of_its_rewrite() -> None:
    before = FILE.replace("HERE", "rows = 4")
    assert limits_of_sizes(before.replace("rows = 4", "rows = 1 if x.numel() > 5000 else 2"), before) == [
        5000
    ]
    assert limits_of_sizes("def broken(") == []


@pytest.mark.parametrize(
    ("line", "limits"),
    [
        ("at = (tl.program_id(0) * 64 + tl.arange(0, 64)).to(tl.int16)", [32767]),
        ("at = tl.arange(0, 64)\n    at = at.to(tl.uint8)", [255]),
        ("at = tl.cast(n, tl.uint16)", [65535]),
        ("at = tl.load(x + tl.arange(0, 64)).to(tl.int8)", []),
        ("at = tl.arange(0, 64).to(tl.int64)", []),
    ],
)
def test_places_in_narrow_integers_have_a_limit(line: str, limits: list[int]) -> None:
    text = f"import triton\nimport triton.language as tl\n\n@triton.jit\ndef kernel(x, n):\n    {line}\n"
    assert limits_of_sizes(text) == limits


def test_sizes_beyond_a_limit_are_multiples_and_the_nearest_come_first() -> None:
    assert shapes_beyond({"rows": 20, "columns": 150}, [1000]) == [
        ({"columns": 1050}, 7),
        ({"rows": 1020}, 51),
    ]
    assert shapes_beyond({"rows": 20, "columns": 150}, [4000])[0] == ({"rows": 40}, 2)
    assert shapes_beyond({"rows": 20}, [10]) == []
    assert shapes_beyond({}, [10]) == []
