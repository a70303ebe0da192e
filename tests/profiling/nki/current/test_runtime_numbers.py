"""Registers and scalars: numbers of the device, their arithmetic, the loops over them and their misuse."""

from __future__ import annotations

import numpy as np
import pytest
from support.nki_current_source import FIRST_LINE, RNG, A, run

from accelopt_profiling.nki.current.versions import VARIABLE

LOAD = """
cell = sbuf(1, 1, dtype=nl.int{bits})
nisa.dma_copy(cell, a)
i = nisa.scalar_load(cell)
"""
STORE = """
nisa.scalar_store(cell, i)
out = nl.ndarray((1, 1), dtype=nl.int{bits}, buffer=nl.shared_hbm)
nisa.dma_copy(out, cell)
return out
"""
ROWS = RNG.standard_normal((64, 8), dtype=np.float32)
FOUR = np.array([[4]], np.int32)


def scalar(statement: str, value: int, bits: int = 32) -> int:
    """What a kernel stores of a scalar that it loaded and changed."""
    body = LOAD.format(bits=bits) + statement + STORE.format(bits=bits)
    return int(run(body, np.array([[value]], f"int{bits}")).result[0, 0])


@pytest.mark.parametrize(
    ("statement", "value", "bits", "result"),
    [
        ("i = i * 4 + 1", 6, 32, 25),
        ("i = 100 - 3 * i", 6, 32, 82),
        ("i = -i + i * i", 6, 32, 30),
        ("assert i.dtype == nl.int32", 6, 32, 6),
        ("i = i * i", 100_000, 32, 1_410_065_408),
        ("i += 1", 2**31 - 1, 32, -(2**31)),
        ("i = i * i", 100_000, 64, 10_000_000_000),
        ("i = i + 1", 2**63 - 1, 64, -(2**63)),
    ],
)
def test_scalars_are_added_and_multiplied_and_wrap_at_their_width(
    statement: str, value: int, bits: int, result: int
) -> None:
    assert scalar(statement, value, bits) == result


@pytest.mark.parametrize(
    ("statement", "bits", "words"),
    [
        ("nisa.scalar_store(cell, 3)", 32, "takes an NkiScalar, not int; write a constant with nisa.memset"),
        ("nisa.scalar_store(sbuf(1, 1, dtype=nl.int64), i)", 32, "int32 is not stored to a tensor of int64"),
        ("nisa.scalar_load(sbuf(1, 1, dtype=nl.uint32))", 32, "int32 or int64, not uint32"),
        ("nisa.scalar_load(nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.psum))", 32, "not in PSUM"),
        ("nisa.scalar_load(sbuf(1, 2, dtype=nl.int32))", 32, "src has the shape (1, 2)"),
        ("nl.fori_loop(0, i, print)", 64, "A loop's bound has 32 bits"),
        ("nl.fori_loop(0, i < 3, print)", 32, "comparison of scalars gives cannot be used"),
        ("nisa.scalar_store(cell, i == 4)", 32, "comparison of scalars gives cannot be used"),
        ("i < 3", 64, "no comparison of 64-bit scalars"),
        ("i // 2", 32, "computed with +, - and * alone"),
        ("i + 1.5", 32, "not float"),
        ("i + 2**31", 32, "does not fit into the scalar's 32 bits"),
        ("nisa.scalar_load(sbuf(1, 1, dtype=nl.int64)) + i", 32, "int64 and int32 do not go together"),
        ("sbuf(128, 8).select(1, i)", 64, "has 32 bits, not 64"),
        ("sbuf(128, 2).select(1, i)", 32, "leads to element"),
        ("sbuf(128, 8)[:, i]", 32, "A number of the device is no index"),
        ("nl.while_loop(3, print)", 32, "init of while_loop is a register, not int"),
        ("nl.while_loop(nisa.register_alloc(3), lambda r: 0)", 32, "it is a register, not int"),
    ],
)
def test_what_cannot_be_done_with_a_scalar_is_told_on_its_line(statement: str, bits: int, words: str) -> None:
    body = LOAD.format(bits=bits) + statement + "\nreturn a"
    fault = run(body, FOUR.astype(f"int{bits}")).fault
    assert fault is not None
    assert words in fault.message
    assert fault.line == FIRST_LINE + 3


@pytest.mark.parametrize("use", ["int(i)", "range(i)", "if i: pass", "float(nisa.register_alloc(3))"])
def test_python_cannot_use_a_number_of_the_device(use: str) -> None:
    with pytest.raises(TypeError, match=r"fori_loop or nl\.while_loop"):
        run(f"{LOAD.format(bits=32)}\n{use}\nreturn a", FOUR)


@pytest.mark.parametrize(
    "source",
    [
        "a.ap([[8, 1], [1, 8]], scalar_offset=2 * i, indirect_dim=0)",
        "a.select(0, 2 * i)",
        "a[nl.ds(i + i, 1), :]",
        "a.select(0, nisa.register_alloc(8))",
    ],
)
def test_a_number_of_the_device_is_an_address(source: str) -> None:
    body = f"""
    {LOAD.format(bits=32).replace("cell, a", "cell, b").replace(chr(10), chr(10) + "    ")}
    row, out = sbuf(1, 8), nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    view = {source}
    assert view.is_indirect()
    nisa.dma_copy(row, view)
    nisa.dma_copy(out, row)
    return out
    """
    np.testing.assert_array_equal(run(body, ROWS, FOUR).result[0], ROWS[8])
    assert run(body, ROWS, FOUR, mode="trace").fault is None
    beyond = run(body, ROWS, np.array([[40]], np.int32)).fault
    assert "alloc" in source or (beyond is not None and beyond.code == "out-of-bounds")


def test_an_instruction_at_a_scalars_address_waits_for_the_scalars_tensor() -> None:
    body = f"{LOAD.format(bits=32)}\nx = sbuf(128, 8)\nnisa.dma_copy(x.select(1, i), c)\nreturn a"
    copy = run(body.replace("cell, a", "cell, b"), A, FOUR, A[:, :1].copy()).trace.instructions[-1]
    assert [block.shape for block, _ in copy.reads] == [(1, 1), (128, 1)]


def test_compute_instructions_follow_a_scalar_on_the_chip() -> None:
    body = f"""
    {LOAD.format(bits=32).replace("cell, a", "cell, b").replace(chr(10), chr(10) + "    ")}
    x, y, out = sbuf(128, 64), sbuf(128, 1), nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(x, a)
    nisa.tensor_copy(y, x.ap([[64, 128], [1, 1]], scalar_offset=i, indirect_dim=1))
    nisa.dma_copy(out, y)
    return out
    """
    np.testing.assert_array_equal(run(body, A, FOUR).result[:, 0], A[:, 4])


LOOP = """
cell, total, one = sbuf(1, 1, dtype=nl.int32), sbuf(1, 1, dtype=nl.int32), sbuf(1, 1, dtype=nl.int32)
nisa.dma_copy(cell, a)
nisa.memset(total, 0)
nisa.memset(one, 1)
register = nisa.register_alloc()
nisa.register_load(register, cell)
{loop}
out = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
nisa.dma_copy(out, total)
return out
"""
COUNTED = """
now = sbuf(1, 1, dtype=nl.int32)
def body(i):
    assert isinstance(i, nisa.{kind})
    nisa.{store}(now, i)
    nisa.tensor_tensor(total, total, now, nl.add)
nl.fori_loop(0, {bound}, body_fun=body)
"""
CONDITION = """
def body(r):
    nisa.register_store(one, r)
    nisa.tensor_tensor(total, total, one, nl.add)
    nisa.tensor_scalar(cell, cell, nl.subtract, 1)
    nisa.register_load(r, cell)
    return r
nl.while_loop(init=register, body_fun=body)
"""


@pytest.mark.parametrize(
    ("version", "loop", "total"),
    [
        ("0.7", COUNTED.format(kind="VirtualRegister", store="register_store", bound="register"), 6),
        ("0.7", COUNTED.format(kind="NkiScalar", store="scalar_store", bound=4), 6),
        (
            "0.7",
            COUNTED.format(kind="NkiScalar", store="scalar_store", bound="nisa.scalar_load(cell) + 1"),
            10,
        ),
        ("0.6", COUNTED.format(kind="VirtualRegister", store="register_store", bound=4), 6),
        ("0.6", CONDITION, 10),
        ("0.7", CONDITION, 10),
    ],
)
def test_loops_on_the_device(version: str, loop: str, total: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, version)
    ran = run(LOOP.format(loop=loop), FOUR)
    assert (ran.findings, int(ran.result[0, 0])) == ([], total)
    assert int(run(LOOP.format(loop=CONDITION), FOUR * 0).result[0, 0]) == 0


BARE = "while register:\n    nisa.tensor_scalar(cell, cell, nl.subtract, 1)\n    nisa.register_load(register, cell)"
RANGE = "for i in nl.dynamic_range(0, register):\n    nisa.tensor_scalar(total, total, nl.add, 2)"


@pytest.mark.parametrize(("loop", "total"), [(BARE, 0), (RANGE, 8)])
@pytest.mark.parametrize(("version", "severity"), [("0.5", None), ("0.6", "information"), ("0.7", "warning")])
def test_loops_that_a_version_dropped_run_and_are_told_of(
    version: str, severity: str | None, loop: str, total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, version)
    ran = run(LOOP.format(loop=loop), FOUR)
    assert int(ran.result[0, 0]) == total
    assert [(f.code, f.severity) for f in ran.findings] == [("deprecated", severity)] * (severity is not None)
    assert all("NKI_COMPILER_FRONTEND=custom" in f.message for f in ran.findings if f.severity == "warning")


def test_registers_move() -> None:
    loop = """
    nisa.register_move(register, 7)
    other = nisa.register_alloc(x=2)
    nisa.register_move(dst=other, src=register)
    nisa.register_store(total, other)
    """
    assert int(run(LOOP.format(loop=loop.replace("\n    ", "\n")), FOUR).result[0, 0]) == 7
