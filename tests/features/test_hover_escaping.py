"""What a kernel, a problem, a host or a model says is shown as it is: no picture, link or HTML of its making."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from accelopt_lsp.features.hover import _kernel, _line
from accelopt_lsp.features.wording import escaped
from accelopt_lsp.state.state_store import Document, KernelState
from accelopt_profiling.kernels import kernels_in
from accelopt_profiling.measurement import Correctness, KernelMeasurement, LineCost
from accelopt_profiling.quantity import Known, Quantity
from accelopt_profiling.source_text import try_parse

EVIL = "![x](https://evil/?key=1) <img src=x> [a](command:b) `c` **d** | e ~~f~~"
DOCUMENT = Document("file:///k.py", "/k.py", read=True)
#: Markup that no backslash stands before.
MARKUP = re.compile(r"(?<!\\)(?:\\\\)*[\[<`~]")


@pytest.mark.parametrize("what", ["case", "host", "bound", "detail", "text", "toolchain", "counter"])
def test_no_part_of_a_hover_can_be_markup(what: str) -> None:
    file = try_parse("import triton\n@triton.jit\ndef k(x):\n    pass\n")
    state = KernelState(kernels_in(file).kernels[0])
    result = KernelMeasurement(
        "k", 3, "triton", "h100", lines=[LineCost(3, EVIL if what == "text" else "load", 0.5)]
    )
    changes = {
        "case": {"case": EVIL}, "host": {"host": EVIL}, "bound": {"bound": EVIL},
        "toolchain": {"toolchain": {EVIL: EVIL}}, "detail": {"correctness": Correctness("failed", EVIL)},
        "counter": {"quantities": {EVIL: Quantity(1.0, Known.EXECUTED, EVIL)}},
    }  # fmt: skip
    result = replace(result, **changes.get(what, {}))
    for page in (_kernel(DOCUMENT, state, result, True, None), _line(result, 3, True) or ""):
        assert not MARKUP.search(page)
        rows = [line for line in page.splitlines() if line.startswith("|")]
        assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)


def test_names_stay_readable() -> None:
    assert escaped("softmax_kernel at x 4096x1024, a < b") == r"softmax_kernel at x 4096x1024, a \< b"
    assert escaped("_private __all__") == r"\_private \__all_\_"
