"""Compiles kernel code once more, so that it notes what runs and loops over Python's ``range`` can be replayed.

``nl.affine_range`` is called by the loop's frame, ``range`` is Python's. So the code of a kernel, and of what it calls,
is compiled once more from its file, with what such a loop goes over passed through ``_counters``; loops whose text does
not allow a replay stay as they are, and so do those inside of a ``try``. Beta 1 has no loops over ``range`` that are
replayed. Code that is not that of its file, as the compiler makes it, is left alone: nothing is known of what it ran.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import linecache
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from accelopt_profiling.nki.frontend.jit import RECORDER
from accelopt_profiling.nki.replay.loop_body import loops_of
from accelopt_profiling.nki.replay.loop_replay import iterations
from accelopt_profiling.ran import note_lines

#: Stands in the compiled code where ``_counters`` is called.
_PLACE = f"{__name__}._counters"
#: The flags of compiled code that a file's imports from ``__future__`` set, or whoever compiled it.
_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names)
)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: As many functions of a kernel are looked at.
_MOST = 2000


def observe(function: Callable[..., Any], ranges: bool) -> None:
    """Let a kernel, and functions that it calls, note what runs; with ``ranges`` let loops over ``range`` be replayed
    where their bodies allow it."""
    for reached in _reached(function):
        code = _compiled(reached.__code__, ranges).get(reached.__code__)
        if code is not None:
            reached.__code__ = code


def _counters(numbers: Any) -> Any:
    return iterations(numbers, sys._getframe(1)) if type(numbers) is range else numbers


def _reached(function: Any) -> Iterator[FunctionType]:
    """Yield a function and those that its code names, and theirs: functions of Python files, and methods of classes."""
    functions: list[Any] = [function]
    ids = {id(function)}
    for at in range(_MOST):
        if at == len(functions):
            return
        value = inspect.unwrap(functions[at]) if callable(functions[at]) else functions[at]
        members: Iterable[Any] = ()
        if isinstance(value, FunctionType):
            yield value
            members = _named_by(value)
        elif isinstance(value, type):
            members = [getattr(member, "__func__", member) for member in vars(value).values()]
        for other in members:
            if id(other) not in ids and _is_kernel_code(other):
                ids.add(id(other))
                functions.append(other)


def _named_by(function: FunctionType) -> Iterator[Any]:
    names = set(_names(function.__code__))
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            yield from (vars(value).get(other) for other in names)
        yield value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


#: The first parts of module names of which no code is a kernel's.
_PACKAGES = frozenset(("accelopt_profiling", "numpy", "ml_dtypes", "torch", "jax", *sys.stdlib_module_names))


def _is_kernel_code(value: Any) -> bool:
    if not isinstance(value, type) and not hasattr(value, "__code__") and not hasattr(value, "__wrapped__"):
        return False
    return str(getattr(value, "__module__", "")).partition(".")[0] not in _PACKAGES


def _compiled(code: CodeType, ranges: bool) -> dict[CodeType, CodeType]:
    """Return the code of a function, and of those that stand with it, as it is to run, by what it is in the file."""
    file = code.co_filename
    linecache.checkcache(file)
    text, flags = "".join(linecache.getlines(file)), code.co_flags & _FUTURE
    return _compiled_text(text, file, flags, ranges, code.co_firstlineno)


@lru_cache(maxsize=1024)
def _compiled_text(text: str, file: str, flags: int, ranges: bool, line: int) -> dict[CodeType, CodeType]:
    """Compile a file without the functions and classes that do not hold ``line``: in a long one they take longer than
    the kernel. What else stands there decides on the code: a call of an imported module's function is another one."""
    read = loops_of(text)
    body = [s for s in read.tree.body if not isinstance(s, _DEFINITIONS) or _holds(s, line)]
    if not body:
        return {}
    before = compile(ast.Module(body, []), file, "exec", flags, dont_inherit=True)
    tree = ast.Module(copy.deepcopy(body), [])
    tried = _tried(tree)
    for loop in ast.walk(tree):
        if ranges and isinstance(loop, ast.For) and loop.iter.lineno in read.loops and loop not in tried:
            call = ast.Call(ast.Constant(_PLACE), [loop.iter], [])
            loop.iter = ast.fix_missing_locations(ast.copy_location(call, loop.iter))
    note_lines(tree, ast.Constant)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a text is called
        after = compile(tree, file, "exec", flags, dont_inherit=True)
    pairs: dict[CodeType, CodeType] = {}
    _pair(before, _with_calls(after, {_PLACE: _counters, **RECORDER.hooks(file)}), pairs)
    return pairs


def _holds(statement: _Definition, line: int) -> bool:
    """Return whether ``line`` is one of a definition's, its decorators' among them."""
    first = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
    return first <= line <= (statement.end_lineno or 0)


def _tried(tree: ast.Module) -> set[ast.AST]:
    """Return all nodes inside of a ``try`` or ``with``: it may catch what a counter raises and a number does not."""
    attempts = [n for n in ast.walk(tree) if isinstance(n, (ast.Try, ast.With))]
    return {node for attempt in attempts for node in ast.walk(attempt)}


def _pair(before: CodeType, after: CodeType, pairs: dict[CodeType, CodeType]) -> None:
    """Note the code of each function, without and with."""
    inside = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (before, after)]
    for one, other in zip(*inside, strict=True):
        pairs[one] = other
        _pair(one, other, pairs)


def _with_calls(code: CodeType, functions: Mapping[str, Callable[..., Any]]) -> CodeType:
    """Return code that calls ``functions`` where it has their names as constants."""
    constants = tuple(
        _with_calls(c, functions) if isinstance(c, CodeType) else functions.get(c, c) if type(c) is str else c
        for c in code.co_consts
    )
    return code.replace(co_consts=constants)
