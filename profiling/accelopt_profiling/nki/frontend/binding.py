"""Gives kernel code the functions of ``operations.json``: calls are checked against a row, then computed."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any, NoReturn

from accelopt_profiling.nki.emulator.machine import current, limits, running_machine
from accelopt_profiling.nki.frontend.handle import handing
from accelopt_profiling.nki.frontend.operators import NlOperation, NlToken
from accelopt_profiling.nki.instructions.allocation import returning
from accelopt_profiling.nki.instructions.demands import check_demands
from accelopt_profiling.nki.instructions.enums import CHOICES, NkiEngine
from accelopt_profiling.nki.operations.table import Choice, NkiDialect, Operation, operations

_PACKAGE = __package__.rpartition(".")[0]
#: Functions of ``nl`` of these kinds neither take nor return tensors.
_WITHOUT_TENSORS = frozenset(("index", "query", "program"))


class NkiInstruction:
    """What an instruction of today's dialect gives back: others may be told to run after it. ``loops`` are the device's
    that it stands in, outermost first."""

    __slots__ = ("_loops",)

    def __init__(self, loops: tuple[int, ...] = ()) -> None:
        self._loops = loops

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Return itself: the instructions of a trace are in an order that keeps every dependency."""
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                refuse("depends_on takes instructions: what calls of nki.isa give back.")
            if producer._loops != self._loops[: len(producer._loops)]:
                refuse(
                    "depends_on leads out of a loop of the device: both instructions stand in the same one, or the "
                    "producer outside of it (AWS's page of nki.isa.NkiInstruction)."
                )
        return self


class NkiValidationError(Exception):
    """The name under which the SDK tells a broken rule. A rule that is broken here ends the kernel instead."""


#: All instructions outside of the device's loops are alike to a kernel.
_ISSUED = NkiInstruction()


def bound_functions(dialect: NkiDialect, module: str, plain_numbers: bool = False) -> dict[str, Any]:
    """Return the functions of "nl" or "nisa" for kernel code, by name.

    With ``plain_numbers`` they get the counter of a loop that is recorded as the number that it is now.
    """
    table: dict[str, Any] = {}
    for operation in operations().values():
        if not operation.name.startswith(f"{module}."):
            continue
        if dialect in operation.tokens:
            table[operation.short] = NlToken(operation.short)
        elif dialect in operation.computes:
            call = bound(operation, dialect)
            if operation.kind != "range" and not (module == "nl" and operation.kind in _WITHOUT_TENSORS):
                call = handing(call, plain_numbers)
            table[operation.short] = NlOperation(operation.short, call) if operation.family else call
    return table


def choices(dialect: NkiDialect) -> dict[str, Any]:
    """Return the enumerations of ``nisa`` and the engines by their older names ("vector_engine")."""
    engines = {f"{member.name}_engine": member for member in NkiEngine}
    if dialect == "beta1":
        return {**CHOICES, **engines}
    return {**engines, **CHOICES}


@cache
def instruction(dialect: NkiDialect, name: str) -> Callable[..., Any]:
    """Return an instruction as a dialect calls it, for functions of ``nl`` that are made of some."""
    return bound(operations()[f"nisa.{name}"], dialect)


def bound(operation: Operation, dialect: NkiDialect) -> Callable[..., Any]:
    """Return the function that computes ``operation``, called with every argument that has an effect, by name.

    Calls with other arguments than the row's fault, and on cores that do not have the operation yet.
    """
    if operation.impossible and dialect == "current":
        return partial(_refuse_impossible, operation)
    function = _in_form(operation, dialect)
    signature = operation.signatures[dialect]
    if signature.variadic or operation.kind == "range":  # a loop looks at the frame that calls it
        return function
    positional, ignored = signature.positional, frozenset(p.name for p in signature.parameters if p.ignored)
    defaults = {
        p.name: default_value(p.default) for p in signature.parameters if not p.required and not p.ignored
    }
    issues = dialect == "current" and operation.name.startswith("nisa.") and bool(operation.opcode)
    silent = dialect == "beta1" and operation.name.startswith("nisa.") and "dst" in signature.names
    moves = operation.name.startswith("nisa.") and (operation.reads or operation.writes)
    demands = dialect == "current" and bool(operation.demands or moves)
    #: Whether a call names something that is ignored, by its number of positions and its names; only allowed calls.
    forms: dict[tuple[Any, ...], bool] = {}

    def call(*arguments: Any, **named: Any) -> Any:
        form = (len(arguments), *named)
        if form not in forms:
            check_call(operation, dialect, arguments, named)
            forms[form] = not ignored.isdisjoint((*positional[: len(arguments)], *named))
        values = {**defaults, **named}
        values.update(zip(positional, arguments, strict=False))
        if operation.generation and limits().generation < operation.generation:
            core = f"trn{operation.generation - 1}"
            refuse(f"{operation.name} needs {core}: name that target, or use another function.")
        if demands:
            check_demands(current(), operation, values)
        if forms[form]:
            values = {name: value for name, value in values.items() if name not in ignored}
        result = function(**values)
        if issues:
            loops = current().device_loops
            return NkiInstruction(loops) if loops else _ISSUED
        return None if silent else result

    call.__name__ = call.__qualname__ = operation.short  # the name may be the ``op`` of an instruction
    call.__doc__ = operation.about
    return call


def computing(operation: Operation, dialect: NkiDialect) -> Callable[..., Any]:
    """Return the emulator's function; that of a family is told which of its operations it computes."""
    module, _, name = operation.computes[dialect].rpartition(".")
    function: Callable[..., Any] = getattr(import_module(f"{_PACKAGE}.{module}"), name)
    return partial(function, operation) if operation.family else function


def _in_form(operation: Operation, dialect: NkiDialect) -> Callable[..., Any]:
    """Return the function in the dialect's form: an instruction that takes a ``dst`` is written in today's."""
    function = computing(operation, dialect)
    if dialect == "current" or not operation.computes[dialect].startswith("instructions."):
        return function
    parameters = inspect.signature(function).parameters
    if "dst" not in parameters:
        return function
    own = {p.name for p in operation.signatures["beta1"].parameters if not p.ignored} - {"dtype"}
    today = operation.signatures["current"].parameters if operation.in_one_form else ()
    defaults = {
        p.name: default_value(p.default)
        for p in today
        if p.name in parameters and not p.required and p.name not in own
    }
    return returning(function, operation, defaults)


def default_value(default: Any) -> Any:
    """Return a default as the emulator's functions take it."""
    return CHOICES[default.kind][default.member] if isinstance(default, Choice) else default


def check_call(
    operation: Operation, dialect: NkiDialect, arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """End the kernel at a call that the row does not allow, and name the function's parameters."""
    signature = operation.signatures[dialect]
    positional = signature.positional
    names = [*positional[: len(arguments)], *named]
    unknown = [name for name in named if name not in signature.names]
    missing = [p.name for p in signature.parameters if p.required and p.name not in names]
    twice = [name for name in named if name in positional[: len(arguments)]]
    if unknown:
        near = difflib.get_close_matches(unknown[0], signature.names, n=1)
        problem = f"has no argument {unknown[0]!r}{f' (nearest: {near[0]})' if near else ''}"
    elif len(arguments) > len(positional):
        problem = f"takes {len(positional)} arguments by position, not {len(arguments)}"
    elif twice:
        problem = f"got the argument {twice[0]!r} twice"
    elif missing:
        problem = f"needs the argument {', '.join(map(repr, missing))}"
    else:
        return
    refuse(f"{operation.name} {problem}; its parameters are {signature}.")


def _refuse_impossible(operation: Operation, *unused: Any, **named_unused: Any) -> NoReturn:
    refuse(f"{operation.name}: {operation.impossible}.")


def refuse(message: str) -> NoReturn:
    """End the kernel with a finding on its current line.

    Raises:
        KernelFaultError: a kernel runs.
        TypeError: none does.
    """
    machine = running_machine()
    if machine is None:
        raise TypeError(message)
    machine.fault("unsupported", message)
