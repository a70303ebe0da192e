"""What public kernels still write of earlier releases: placed tiles, annotations, a copy that names its dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import nki_current_source, nki_source

A = np.random.default_rng(5).standard_normal((128, 64), dtype=np.float32)

PLACED = """
out = nl.ndarray((128, 64), dtype=np.float32, buffer=nl.shared_hbm)
tiles = nl.ndarray((2, nl.par_dim(128), 64), dtype=np.float32, buffer=nki.compiler.sbuf.mod_alloc(base_addr=0))
for i in nl.affine_range(2):
    tiles[i] = nl.load(a)
nl.store(out, nl.add(tiles[0], tiles[1]))
return out
"""


def test_a_tile_that_the_kernel_places_is_placed_by_the_emulator_which_says_so() -> None:
    outcome = nki_source.run(PLACED, A)
    assert outcome.fault is None
    np.testing.assert_array_equal(outcome.result, A + A)
    ((code, line, severity, message),) = [(f.code, f.line, f.severity, f.message) for f in outcome.findings]
    assert (code, line, severity) == ("unsupported", nki_source.FIRST_LINE + 1, "information")
    assert "nl.sbuf are placed by their lifetime" in message


@pytest.mark.parametrize("hint", ["skip_middle_end_transformations", "enable_stack_allocator(log_level=1)"])
def test_hints_to_the_compiler_and_annotations_change_nothing(hint: str) -> None:
    head = nki_source.HEAD.replace("@nki.jit", f"@nki.compiler.{hint}\n@nki.jit")
    head = head.replace("{arguments}", "{arguments}: nki.tensor")
    assert nki_source.run("with nki.compiler.no_reorder():\n    b = a\nreturn b", A, head=head).fault is None


def test_an_annotated_argument_is_written_in_its_place() -> None:
    head = nki_source.HEAD.replace("{arguments}", "a: nt.tensor[nt.mutable]")
    head = head.replace("@nki.jit", "import neuronxcc.nki.typing as nt\n\n\n@nki.jit")
    array = A.copy()
    assert nki_source.run("nl.store(a, nl.add(nl.load(a), 1.0))\nreturn a", array, head=head).fault is None
    np.testing.assert_array_equal(array, A + 1)


REDUCED = """
out = nl.ndarray((128, 64), dtype=np.float32, buffer=nl.shared_hbm)
column = nl.ndarray((nl.par_dim(128), 1), dtype=np.float32)
x = nl.load(a)
{statement}
nl.store(out, nl.multiply(y, column))
return out
"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "y = nisa.tensor_scalar_reduce(data=x, op0=nl.multiply, operand0=2.0, reduce_op=nl.max, reduce_res=column)",
            2 * A * (2 * A).max(1, keepdims=True),
        ),
        (
            "y = nisa.tensor_scalar_reduce(data=x, op0=np.subtract, operand0=1.0, reverse0=True, reduce_op=np.add,"
            " reduce_res=column)",
            (1 - A) * (1 - A).sum(1, keepdims=True),
        ),
        (
            "y = nisa.activation(op=nl.exp, data=x, reduce_op=nl.add, reduce_res=column,"
            " reduce_cmd=nisa.reduce_cmd.reset_reduce)",
            np.exp(A) * np.exp(A).sum(1, keepdims=True),
        ),
    ],
)
def test_an_instruction_reduces_what_it_computes(statement: str, expected: np.ndarray[Any, Any]) -> None:
    outcome = nki_source.run(REDUCED.format(statement=statement), A)
    assert outcome.fault is None, outcome.fault
    np.testing.assert_allclose(outcome.result, expected, rtol=1e-4, atol=1e-4)
    assert any(i.opcode.endswith("_reduce") for i in outcome.trace.instructions)


def test_an_accumulation_over_instructions_adds_to_what_the_first_one_reset() -> None:
    start = "nisa.activation(nl.exp, x, reduce_op=nl.add, reduce_res=column, reduce_cmd=nisa.reduce_cmd."
    outcome = nki_source.run(REDUCED.format(statement=f"y = {start}reset_reduce)\ny = {start}reduce)"), A)
    assert outcome.fault is None, outcome.fault
    expected = np.exp(A) * 2 * np.exp(A).sum(1, keepdims=True)
    np.testing.assert_allclose(outcome.result, expected, rtol=1e-4, atol=1e-4)


COPY = """
out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
x, y = sbuf(128, 64), sbuf(128, 64)
nisa.dma_copy(x, a)
nisa.tensor_copy(dst=y, src=x, dtype=nl.{dtype})
nisa.dma_copy(out, y)
return out
"""


def test_a_copy_may_repeat_the_dtype_of_its_destination() -> None:
    outcome = nki_current_source.run(COPY.format(dtype="float32"), A)
    np.testing.assert_array_equal(outcome.result, A)
    line = nki_current_source.FIRST_LINE + 3
    assert [(f.code, f.line, f.severity) for f in outcome.findings] == [("deprecated", line, "information")]


def test_a_copy_may_not_name_another_dtype() -> None:
    fault = nki_current_source.run(COPY.format(dtype="bfloat16"), A).fault
    assert fault is not None
    assert (fault.code, fault.line) == ("unsupported", nki_current_source.FIRST_LINE + 3)
    assert "it copies into dst, which is float32" in fault.message
