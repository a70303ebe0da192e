"""What the hardware does not allow is told on its line, in the current dialect."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.nki_current_source import FIRST_LINE, TRN2, A, run

from accelopt_profiling.nki.data.memory_space import CoreLimits
from accelopt_profiling.nki.emulator.machine import Mode

LOAD = "x = sbuf(128, 64)\nnisa.dma_copy(x, a)\n"

#: A body after ``LOAD``, the line (from the body's first) that is wrong, the code, and words of the message.
VIOLATIONS = [
    ("nisa.tensor_tensr(x, x, x, nl.add)", 3, "unsupported", "nki.isa.tensor_tensr.*nearest there is: .*tensor_tensor"),
    ("i = nl.arange(128)", 3, "unsupported", "nki.language.arange is gone since NKI 0.1; use slices"),
    ("y = psum(64, 64)\nnisa.nc_matmul(x[0:64, :], x, x)", 4, "unsupported", "nc_matmul writes to PSUM"),
    ("nisa.activation(x, nl.exp, a)", 3, "unsupported", "data lies in HBM"),
    ("nisa.tensor_copy(x, x[:, 0:32])", 3, "out-of-bounds", "elements in each must agree"),
    ("nisa.dma_copy(x, a[0:64, :])", 3, "out-of-bounds", "src has 4096 elements"),
    ("p = psum(128, 64)\nnisa.dma_copy(p, a)", 4, "unsupported", "DMA does not reach PSUM"),
    ("p = psum(128, 64)\nnisa.tensor_copy(p, x, engine=nisa.engine.gpsimd)", 4, "unsupported", "cannot reach PSUM"),
    ("p, q = psum(64, 64), psum(64, 64)\nnisa.nc_matmul(p, x, x)\nnisa.nc_matmul(q, x, x)\n"
     "nisa.tensor_tensor(x[0:64, :], p, q, nl.add)", 6, "unsupported", "at most one operand from PSUM"),
    ("x = sbuf(129, 4)", 3, "capacity", "129; SBUF has 128 partitions"),
    ("nisa.tensor_copy(x[:, 0:65], x)", 3, "out-of-bounds", "0:65 leaves dimension 1"),
    ("y = x.ap([[64, 128], [1, 65]])\nnisa.tensor_copy(y, y)", 3, "out-of-bounds", "reaches element 8192"),
    ("y = x.ap([[32, 128], [1, 32]])", 3, "unsupported", "steps 32 elements from partition to partition"),
    ("y = x + x", 3, "unsupported", "no operator for 'add'"),
    ("x[...] = nl.add(x, x)", 3, "unsupported", "not assigned to"),
    ("y = x.reshape((64, 128))", 3, "unsupported", "between partitions"),
    ("nisa.nc_transpose(x, x)", 3, "out-of-bounds", "transpose of"),
    ("nisa.exponential(x, x)", 3, "unsupported", "needs trn3"),
    ("nisa.memset(sbuf(128, 4, dtype=nl.int32), 1.5)", 3, "unsupported", "memset cannot fill"),
    ("nisa.tensor_copy(x, x, engine='vector')", 3, "unsupported", "member of nisa.engine"),
    ("y = sbuf(128, 64, dtype=nl.bfloat16)\nnisa.tensor_copy(y, x)\np = psum(64, 64)\nnisa.nc_matmul(p, x, y)",
     6, "unsupported", "either both are float32"),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["full", "trace"])
@pytest.mark.parametrize(("body", "line", "code", "words"), VIOLATIONS)
def test_a_broken_rule_is_told_on_its_line(body: str, line: int, code: str, words: str, mode: Mode) -> None:
    fault = run(LOAD + body + "\nreturn a", A, mode=mode).fault
    assert fault is not None
    assert re.search(words, fault.message), fault.message
    expected_line = (
        FIRST_LINE + line - 1 if "sbuf(129" not in body and "sbuf(128, 4, dtype" not in body else fault.line
    )
    assert (fault.code, fault.line) == (code, expected_line)


def test_reading_what_was_never_written_is_told() -> None:
    body = """
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    half = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf, name="half")
    nisa.dma_copy(half[:, 0:32], a[:, 0:32])
    nisa.dma_copy(out, half)
    return out
    """
    outcome = run(body, A)
    assert [(f.code, f.line) for f in outcome.findings] == [("uninitialised-read", FIRST_LINE + 3)]
    assert np.isnan(outcome.result[:, 32:]).all()
    np.testing.assert_array_equal(outcome.result[:, :32], A[:, :32])


@pytest.mark.parametrize(("limits", "allowed"), [(CoreLimits(), True), (TRN2, False)])
def test_the_second_generation_transposes_by_a_product(limits: CoreLimits, allowed: bool) -> None:
    body = "y = sbuf(128, 64, dtype=nl.bfloat16)\nnisa.tensor_copy(y, x)\nnisa.nc_transpose(psum(64, 128), y)"
    fault = run(f"{LOAD}{body}\nreturn a", A, mode="trace", limits=limits).fault
    assert (fault is None) is allowed, fault


@pytest.mark.parametrize(
    ("returned", "allowed"),
    [
        ("return a", True),
        ("out = a\nreturn out", True),
        ("return None", True),
        ("", True),
        ("return b", False),
    ],
)
def test_an_input_can_be_written_where_the_kernel_returns_it_or_nothing(returned: str, allowed: bool) -> None:
    array = A.copy()
    outcome = run(f"x = sbuf(128, 64)\nnisa.dma_copy(x, b)\nnisa.dma_copy(a, x)\n{returned}", array, A + 1)
    assert (outcome.fault is None) is allowed
    np.testing.assert_array_equal(array, A + 1 if allowed else A)
