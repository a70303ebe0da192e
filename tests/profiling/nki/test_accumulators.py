"""Every instruction that reduces into its engine's registers, in both dialects, against its documented definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import nki_current_source, nki_source

from accelopt_profiling.nki.data.memory_space import CoreLimits
from accelopt_profiling.nki.operations.table import NkiDialect, operations

TRN3 = CoreLimits(sbuf_bytes=256 << 10)
ROWS, WIDTH = 8, 6
RNG = np.random.default_rng(11)
A = (RNG.uniform(0.5, 1.5, (ROWS, WIDTH)) * RNG.choice([-1, 1], (ROWS, WIDTH))).astype(np.float32)
START = RNG.uniform(-2, 2, (ROWS, 1)).astype(np.float32)
LEAST = np.finfo(np.float32).min
IDENTITY = {"add": 0.0, "multiply": 1.0, "max": -np.inf, "min": np.inf}
REDUCE = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}


def parameters(dialect: NkiDialect, name: str) -> frozenset[str]:
    return operations()[f"nisa.{name}"].signatures[dialect].names


@dataclass(frozen=True)
class Instruction:
    """How an instruction is called on the tile ``x``, what it computes of it before it reduces, the ``commands`` that
    its page names, and the argument with the ``initial`` value to load."""

    engine: str
    ops: tuple[str, ...]
    commands: tuple[str, ...]
    values: Callable[[np.ndarray], np.ndarray]
    call: str
    beta1: str | None = None
    initial: str | None = None
    cumulative: bool = False


REAL = ("add", "multiply", "max", "min")
POSITION = np.arange(WIDTH)
INSTRUCTIONS = {
    "activation": Instruction(
        "scalar", ("add",), ("idle", "reset", "reset_reduce", "reduce"), np.square,
        "nisa.activation({dst}, nl.square, {x}, {reduce})",
        "{dst}[...] = nisa.activation(nl.square, {x}, {reduce}{dtype})",
    ),
    "activation_reduce": Instruction(
        "scalar", ("add",), ("reset_reduce",), np.square,
        "nisa.activation_reduce({dst}, nl.square, {x}, {reduce})",
        "{dst}[...] = nisa.activation_reduce(nl.square, {x}, {reduce}{dtype})",
    ),
    "activate2": Instruction(
        "scalar", ("add", "max", "min"), ("idle", "reset", "reset_reduce", "reduce"), lambda x: np.square(x * 2),
        "nisa.activate2({dst}, nl.square, {x}, 2.0, 0.0, nl.multiply, nl.bypass, {reduce})",
    ),
    "exponential": Instruction(
        "vector", ("add",), ("idle", "reset_reduce", "reduce", "load_reduce"), np.exp,
        "nisa.exponential({dst}, {x}, {reduce})", initial="reduce_init",
    ),
    "tensor_scalar_reduce": Instruction(
        "vector", REAL, ("reset_reduce", "reduce", "load_reduce"), lambda x: x * 3,
        "nisa.tensor_scalar_reduce({dst}, {x}, nl.multiply, 3.0, {reduce})",
        "{dst}[...] = nisa.tensor_scalar_reduce(data={x}, op0=nl.multiply, operand0=3.0, {reduce}{dtype})",
        initial="reduce_init",
    ),
    "range_select": Instruction(
        "vector", ("max",), ("idle", "reset_reduce", "reduce"), lambda x: np.where(POSITION < 4, x, LEAST),
        "nisa.range_select({dst}, {x}, nl.greater_equal, nl.less, low, high, {reduce})",
        "{dst}[...] = nisa.range_select(on_true_tile={x}, comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=low, "
        "bound1=high, {reduce}{dtype})",
    ),
    "select_reduce": Instruction(
        "vector", ("max",), ("idle", "reset_reduce", "reduce"), lambda x: np.where(x > 0, x, -9.0),
        "nisa.select_reduce(dst={dst}, predicate=positive, on_true={x}, on_false=-9.0, {reduce})",
        "nisa.select_reduce(dst={dst}, predicate=positive, on_true={x}, on_false=-9.0, {reduce})",
    ),
    "tensor_scalar_cumulative": Instruction(
        "vector", REAL, ("reset_reduce", "reduce", "load_reduce"), lambda x: x + 0.25,
        "nisa.tensor_scalar_cumulative(dst={dst}, src={x}, op0=nl.add, op1={op}, imm0=0.25, {reduce})",
        "nisa.tensor_scalar_cumulative(dst={dst}, src={x}, op0=nl.add, op1={op}, imm0=0.25, {reduce})",
        initial="imm1", cumulative=True,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One call: ``read`` tells whether it reads the registers out, ``narrow`` whether it writes bfloat16."""

    name: str
    op: str
    command: str
    read: bool
    narrow: bool
    tile: bool  # load_reduce loads a tile, or a number


@st.composite
def calls(draw: Any, dialect: NkiDialect) -> list[Call]:
    """Draw up to five calls on both engines, none of which reads registers that hold nothing."""
    names = sorted(n for n in INSTRUCTIONS if dialect == "current" or INSTRUCTIONS[n].beta1)
    holds: dict[str, bool] = {}
    drawn: list[Call] = []
    for _ in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from(names))
        one = INSTRUCTIONS[name]
        accepted = parameters(dialect, name)
        commands = [
            c
            for c in (one.commands if "reduce_cmd" in accepted else ("reset_reduce",))
            if holds.get(one.engine) or c != "reduce"
        ]
        command = draw(st.sampled_from(commands))
        if command == "idle" and one.engine == "vector":
            holds[one.engine] = False
        elif command != "idle":
            holds[one.engine] = True
        read = not one.cumulative and holds.get(one.engine, False) and draw(st.booleans())
        drawn.append(
            Call(
                name,
                draw(st.sampled_from(one.ops)),
                command,
                read or "reduce_cmd" not in accepted,
                draw(st.booleans()),
                draw(st.booleans()),
            )
        )
    return drawn


def arguments(call: Call, number: int, dialect: NkiDialect) -> str:
    """Return the arguments that say what a call does with the registers."""
    one = INSTRUCTIONS[call.name]
    accepted = parameters(dialect, call.name)
    parts = {"reduce_op": f"nl.{call.op}", "reduce_cmd": f"nisa.reduce_cmd.{call.command}"}
    if call.read:
        parts["reduce_res"] = f"c{number}"
    if call.command == "load_reduce":
        parts[str(one.initial)] = "start" if call.tile else "1.5"
    return ", ".join(f"{name}={value}" for name, value in parts.items() if name in accepted)


def body(drawn: list[Call], dialect: NkiDialect) -> str:
    """Return a kernel that does the calls and returns what each wrote, then what each read out, side by side."""
    lines = [f"out = nl.ndarray((8, {len(drawn) * (WIDTH + 1)}), dtype=nl.float32, buffer=nl.shared_hbm)"]
    new = "nl.ndarray(({}, {}), dtype=nl.{}, buffer=nl.sbuf)"
    for name, source in (("x", "a"), ("start", "b"), ("low", "c"), ("high", "d"), ("positive", "e")):
        width = WIDTH if source in "ae" else 1
        kind = "uint8" if name == "positive" else "float32"
        lines.append(f"{name} = {new.format(ROWS, width, kind)}")
        lines.append(
            f"nisa.dma_copy(dst={name}, src={source})"
            if dialect == "current"
            else f"{name}[...] = nl.load({source})"
        )
    for n, call in enumerate(drawn):
        kind = "bfloat16" if call.narrow else "float32"
        lines += [f"d{n} = {new.format(ROWS, WIDTH, kind)}", f"c{n} = {new.format(ROWS, 1, 'float32')}"]
        lines.append(f"nisa.memset(c{n}, 7.0)" if dialect == "current" else f"c{n}[...] = 7.0")
        one = INSTRUCTIONS[call.name]
        form = one.call if dialect == "current" else str(one.beta1)
        text = arguments(call, n, dialect)
        lines.append(
            form.format(
                dst=f"d{n}", x="x", reduce=text, op=f"nl.{call.op}", dtype=f", dtype=nl.{kind}"
            ).replace(", )", ")")
        )
    for n in range(len(drawn)):
        for part, at, width in ((f"d{n}", n * WIDTH, WIDTH), (f"c{n}", len(drawn) * WIDTH + n, 1)):
            lines.append(f"w{part} = {new.format(ROWS, width, 'float32')}")
            if dialect == "current":
                lines.append(f"nisa.tensor_copy(w{part}, {part})")
                lines.append(f"nisa.dma_copy(out[:, {at}:{at + width}], w{part})")
            else:
                lines.append(f"w{part}[...] = nl.copy({part}, dtype=nl.float32)")
                lines.append(f"nl.store(out[:, {at}:{at + width}], w{part})")
    return "\n".join([*lines, "return out"])


def defined(drawn: list[Call]) -> np.ndarray:
    """Return what the documentation says the kernel computes."""
    registers: dict[str, Any] = {}
    written, columns = [], []
    for call in drawn:
        one = INSTRUCTIONS[call.name]
        values = one.values(A).astype(np.float32)
        function = REDUCE[call.op]
        held = registers.get(one.engine)
        if call.command in ("reset", "reset_reduce"):
            held = np.full((ROWS, 1), IDENTITY[call.op], np.float32)
        elif call.command == "load_reduce":
            held = START if call.tile else np.full((ROWS, 1), 1.5, np.float32)
        if one.cumulative:
            values = function.accumulate(np.concatenate([held, values], axis=1), axis=1)[:, 1:]
            held = values[:, -1:]
        elif call.command not in ("idle", "reset"):
            held = function(held, function.reduce(values, axis=1, keepdims=True))
        if call.command == "idle" and one.engine == "vector":
            held = None
        registers[one.engine] = held
        written.append(values.astype(ml_dtypes.bfloat16).astype(np.float32) if call.narrow else values)
        columns.append(held if call.read else np.full((ROWS, 1), 7.0, np.float32))
    return np.concatenate([*written, *columns], axis=1)


INPUTS = (
    A,
    START,
    np.zeros((ROWS, 1), np.float32),
    np.full((ROWS, 1), 4, np.float32),
    (A > 0).astype(np.float32),
)


def computed(drawn: list[Call], dialect: NkiDialect, mode: Any = "full") -> Any:
    source: Any = nki_current_source if dialect == "current" else nki_source
    outcome = source.run(body(drawn, dialect), *INPUTS, limits=TRN3, mode=mode)
    assert outcome.fault is None, (outcome.fault, body(drawn, dialect))
    assert [f for f in outcome.findings if f.code == "uninitialised-read"] == []
    return outcome.result


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["beta1", "current"])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_calls_leave_in_the_registers_what_the_documentation_says(dialect: NkiDialect, data: Any) -> None:
    drawn = data.draw(calls(dialect))
    expected = defined(drawn)
    np.testing.assert_allclose(computed(drawn, dialect), expected, rtol=2e-3, atol=1e-5)
    assert computed(drawn, dialect, "trace").shape == expected.shape
    if dialect == "beta1":  # whatever Beta 1 can say, today's dialect computes alike
        np.testing.assert_allclose(computed(drawn, "current"), computed(drawn, "beta1"), rtol=1e-5)


@pytest.mark.parametrize("dialect", ["beta1", "current"])
def test_every_instruction_that_reduces_is_defined_here(dialect: NkiDialect) -> None:
    reducing = {
        operation.short
        for operation in operations().values()
        if dialect in operation.computes
        and {"reduce_cmd", "reduce_res"} & operation.signatures[dialect].names
    }
    assert reducing == {n for n, one in INSTRUCTIONS.items() if dialect == "current" or one.beta1}


def test_every_argument_and_command_of_an_instruction_is_drawn() -> None:
    for name, one in INSTRUCTIONS.items():
        accepted = parameters("current", name)
        assert ("load_reduce" in one.commands) == (one.initial is not None), name
        assert one.initial is None or one.initial in accepted, name


@pytest.mark.parametrize("name", sorted(n for n, one in INSTRUCTIONS.items() if "reduce" in one.commands))
def test_registers_that_hold_nothing_are_reported(name: str) -> None:
    one = INSTRUCTIONS[name]
    first = Call(name, one.ops[0], "reduce", not one.cumulative, False, False)
    outcome = nki_current_source.run(body([first], "current"), *INPUTS, limits=TRN3)
    assert [f.code for f in outcome.findings if f.severity == "error"] == ["uninitialised-read"]
    assert np.isnan(outcome.result).any()


def test_after_idle_vector_registers_hold_nothing_that_is_known() -> None:
    drawn = [
        Call("tensor_scalar_reduce", "add", "reset_reduce", False, False, False),
        Call("select_reduce", "max", "idle", False, False, False),
        Call("tensor_scalar_reduce", "add", "reduce", True, False, False),
    ]
    outcome = nki_current_source.run(body(drawn, "current"), *INPUTS, limits=TRN3)
    assert [f.code for f in outcome.findings] == ["uninitialised-read"]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (name, command)
        for name, one in INSTRUCTIONS.items()
        for command in ("idle", "reset", "reset_reduce", "reduce", "load_reduce")
        if command not in one.commands and (name, command) != ("tensor_scalar_reduce", "idle")
        and name not in ("activation_reduce", "tensor_scalar_cumulative")
    ],
)  # fmt: skip
def test_a_command_that_an_instruction_has_not_is_refused(name: str, command: str) -> None:
    drawn = [Call(name, INSTRUCTIONS[name].ops[0], command, False, False, False)]
    text = body(drawn, "current").replace("None=1.5", "name='n'")
    fault = nki_current_source.run(text, *INPUTS, limits=TRN3).fault
    assert fault is not None
    assert fault.code == "unsupported"
    assert command in fault.message


IN_A_LOOP = """
out = nl.ndarray((8, 12), dtype=nl.float32, buffer=nl.shared_hbm)
x, wide, column = sbuf(8, {width}, dtype=nl.{dtype}), sbuf(8, {width}, dtype=nl.{dtype}), sbuf(8, 1)
nisa.dma_copy(x, a[:, 0:{width}])
{before}
for i in range(12):
    nisa.tensor_scalar_reduce(wide, x, nl.multiply, 2.0, nl.{op}, reduce_cmd=nisa.reduce_cmd.{first})
    nisa.tensor_scalar_reduce(x, x, nl.add, 0.5, nl.{op}, column, reduce_cmd=nisa.reduce_cmd.reduce)
    nisa.dma_copy(out[:, i:i + 1], column)
return out
"""


@pytest.mark.parametrize("op", sorted(REDUCE))
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("first", ["reset_reduce", "reduce"])
@pytest.mark.filterwarnings("ignore:overflow")
def test_iterations_of_a_loop_reduce_what_each_of_them_computes(op: str, dtype: str, first: str) -> None:
    """The instruction that goes on writes over what it reads; from the second iteration on another value is there."""
    before = (
        f"nisa.tensor_scalar_reduce(wide, x, nl.add, 0.0, nl.{op}, reduce_cmd=nisa.reduce_cmd.reset_reduce)"
        if first == "reduce"
        else ""
    )
    body = IN_A_LOOP.format(op=op, dtype=dtype, first=first, width=4, before=before)
    kind, function = np.dtype(getattr(ml_dtypes, dtype, dtype)), REDUCE[op]
    x = (A / 8).astype(kind).astype(np.float32)[:, :4]
    held = function.reduce(x, axis=1) if first == "reduce" else None
    columns = []
    for _ in range(12):
        one, two = function.reduce(x * 2, axis=1), function.reduce(x + np.float32(0.5), axis=1)
        held = (
            function(function(one, two), held)
            if held is not None and first == "reduce"
            else function(one, two)
        )
        columns.append(held)
        x = (x + np.float32(0.5)).astype(kind).astype(np.float32)
    outcome = nki_current_source.run(body, (A / 8).astype(kind))
    assert outcome.fault is None
    np.testing.assert_allclose(outcome.result, np.stack(columns, axis=1), rtol=1e-4)


def test_an_instruction_of_beta_1_writes_its_result_and_what_it_reads_out() -> None:
    body = """
    out = nl.ndarray((8, 6), dtype=nl.float32, buffer=nl.shared_hbm)
    squares, total = nl.ndarray((8, 6), dtype=nl.float32), nl.ndarray((8, 1), dtype=nl.float32)
    squares[...] = nisa.activation_reduce(nl.square, nl.load(a), reduce_op=nl.add, reduce_res=total)
    nl.store(out, nl.multiply(squares, total))
    return out
    """
    outcome = nki_source.run(body, A)
    np.testing.assert_allclose(outcome.result, A * A * (A * A).sum(1, keepdims=True), rtol=1e-5)
    (instruction,) = [i for i in outcome.trace.instructions if i.opcode == "activation_reduce"]
    assert sorted(block.shape for block, _ in instruction.writes) == [(8, 1), (8, 6)]
