"""A merged file that Python could not run is refused: what reads a name too early, or binds one twice."""

import pytest

from accelopt_agent.transfer.edit_transfer import is_sound

HEAD = "import triton\nimport triton.language as tl\n\nWIDE = 64\n\n\n@triton.jit\ndef kernel(x, n, B: tl.constexpr):\n"
BEFORE = HEAD + "    at = tl.arange(0, B)\n    tl.store(x + at, at)\n"


@pytest.mark.parametrize(
    ("body", "sound"),
    [
        ("at = tl.arange(0, B)\ntl.store(x + at, at)", True),
        ("tl.store(x + at, at)\nat = tl.arange(0, B)", False),
        ("at = at + tl.arange(0, B)\ntl.store(x + at, at)", False),
        ("total += WIDE\ntl.store(x, total)", False),
        ("total: int = WIDE\ntl.store(x, total)", True),
        ("for k in range(WIDE):\n    tl.store(x + k, k)", True),
        ("for k in range(k):\n    tl.store(x + k, k)", False),
        ("if n > 0:\n    at = n\nelse:\n    at = 0\ntl.store(x + at, at)", True),
        ("def later():\n    return at\nat = n\ntl.store(x, later())", True),
        ("rows = [k * WIDE for k in range(n)]\ntl.store(x, rows[0])", True),
        ("if (at := n) > 0:\n    tl.store(x + at, at)", True),
        ("tl.store(x, nowhere)", False),
        ("tl.store(x, n, mask=n, mask=n)", False),
        ("import math as m\ntl.store(x, m.pi)", True),
    ],
)
def test_names_are_bound_before_they_are_read(body: str, sound: bool) -> None:
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    assert is_sound(text, BEFORE, "kernel") is sound


def test_what_the_other_kernel_already_reads_early_is_its_own_matter() -> None:
    early = HEAD + "    if n < 0:\n        tl.store(x, at)\n    at = n\n    tl.store(x, at)\n"
    assert is_sound(early, early, "kernel")
    assert not is_sound(early, BEFORE, "kernel")


def test_the_kernel_and_its_dialect_stay() -> None:
    assert not is_sound(BEFORE.replace("kernel", "other"), BEFORE, "kernel")
    assert not is_sound("def f(:", BEFORE, "kernel")
