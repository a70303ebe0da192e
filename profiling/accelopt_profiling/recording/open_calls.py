"""Know which functions of kernel files are being called: their sources are compiled with a note at start and end.

Only files that define Triton kernels are changed, only on the way into memory, and only plain functions: what is jitted
keeps its source. Line numbers stay.
"""

from __future__ import annotations

import ast
import sys
import threading
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelopt_profiling.recording.value_encoding import EncodedArguments

_ENTER, _LEAVE = "__accelopt_enter__", "__accelopt_leave__"
_TOKEN = "__accelopt_call__"
#: Decorators whose functions are compiled from their source text by somebody else.
_COMPILED = ("jit", "constexpr_function", "script", "gluon")


@dataclass(eq=False)
class OpenCall:
    """A call of ``name`` (qualified) in ``file``: its arguments by name as they came in, those that take a keyword only
    in ``keywords``.

    What the observer notes of a call under way: ``seen``, that it was looked at; ``entry``, the call as it is made from
    outside; that one's arguments ``encoded``; the ``number`` of the recorded call.
    """

    file: str
    name: str
    arguments: list[tuple[str, Any]]
    keywords: list[str]
    seen: bool = False
    entry: OpenCall | None = None
    encoded: EncodedArguments | None = None
    number: int | None = None


class OpenCalls:
    """The calls under way, per thread, outermost first."""

    def __init__(self) -> None:
        self._local = threading.local()

    def stack(self) -> list[OpenCall]:
        """Return the calls under way in this thread."""
        calls: list[OpenCall] | None = getattr(self._local, "calls", None)
        if calls is None:
            calls = self._local.calls = []
        return calls

    def enter(
        self, file: str, name: str, positional: list[tuple[str, Any]], more: Any, keyword_only: Any, rest: Any
    ) -> OpenCall:
        """Note the start of a call: positional arguments, ``*more``, keyword-only ones and ``**rest``."""
        keywords = dict(keyword_only)
        keywords.update(rest or {})
        arguments = [
            *positional,
            *((f"argument {len(positional) + n + 1}", v) for n, v in enumerate(more or ())),
        ]
        call = OpenCall(file, name, [*arguments, *keywords.items()], list(keywords))
        self.stack().append(call)
        return call

    def leave(self, call: OpenCall) -> None:
        """Note the end of a call, and of those in it whose end was not seen."""
        calls = self.stack()
        if call in calls:
            del calls[calls.index(call) :]


def defines_kernels(text: bytes) -> bool:
    """Tell by a look at a source whether it may define Triton kernels."""
    return b"triton" in text and b"jit" in text


def instrument(text: bytes, path: str) -> CodeType:
    """Compile a source with a note at the start and the end of each of its plain functions.

    Raises:
        SyntaxError: it does not parse.
    """
    tree = ast.parse(text, path)
    _Instrument(path).visit(tree)
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Instrument(ast.NodeTransformer):
    """Puts the body of every top-level function and method between the notes.

    Nested functions are left alone.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._classes: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._classes.append(node.name)
        node.body = [self.visit(statement) for statement in node.body]
        self._classes.pop()
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        decorators = [ast.unparse(d) for d in node.decorator_list]
        if any(word in d for d in decorators for word in _COMPILED) or _yields(node):
            return node
        first = next((n for n, s in enumerate(node.body) if not _leads(s)), len(node.body))
        body = node.body[first:]
        if not body:
            return node
        start = ast.copy_location(
            ast.Assign([ast.Name(_TOKEN, ast.Store())], self._enter(node)), node.body[first]
        )
        end = ast.Expr(ast.Call(ast.Name(_LEAVE, ast.Load()), [ast.Name(_TOKEN, ast.Load())], []))
        ast.copy_location(end, node.body[-1])
        guarded = ast.copy_location(ast.Try(body, [], [], [end]), node.body[first])
        node.body = [*node.body[:first], start, guarded]
        return node

    def _enter(self, node: ast.FunctionDef) -> ast.Call:
        def pair(name: str) -> ast.expr:
            return ast.Tuple([ast.Constant(name), ast.Name(name, ast.Load())], ast.Load())

        def optional(argument: ast.arg | None) -> ast.expr:
            return ast.Name(argument.arg, ast.Load()) if argument else ast.Constant(None)

        plain = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        only = [a.arg for a in node.args.kwonlyargs]
        return ast.Call(
            ast.Name(_ENTER, ast.Load()),
            [
                ast.Constant(self._path), ast.Constant(".".join([*self._classes, node.name])),
                ast.List([pair(n) for n in plain], ast.Load()), optional(node.args.vararg),
                ast.List([pair(n) for n in only], ast.Load()), optional(node.args.kwarg),
            ],
            [],
        )  # fmt: skip


def _leads(statement: ast.stmt) -> bool:
    """Tell of a statement that has to stay first: a docstring, ``global``, ``nonlocal``."""
    documented = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return documented or isinstance(statement, (ast.Global, ast.Nonlocal))


def _yields(node: ast.AST) -> bool:
    """Tell whether a function, or one in it, is a generator."""
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node))


def install(calls: OpenCalls) -> None:
    """Compile the kernel files that are imported from now on with their notes going to ``calls``."""
    import builtins

    setattr(builtins, _ENTER, calls.enter)
    setattr(builtins, _LEAVE, calls.leave)
    get_code = SourceFileLoader.get_code

    def get_noted_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        if type(loader) is SourceFileLoader and not fullname.startswith(_NEVER):
            path = loader.get_filename(fullname)
            try:
                text = loader.get_data(path)
                if defines_kernels(text):
                    return instrument(text, path)
            except (OSError, SyntaxError, ValueError, RecursionError):
                pass  # the loader's own way says what is wrong
        return get_code(loader, fullname)

    setattr(SourceFileLoader, "get_code", get_noted_code)  # noqa: B010 - a method of the standard library
    sys.path_importer_cache.clear()


#: Modules that define no kernels of anybody's files: this package and what Triton and torch are made of.
_NEVER = ("accelopt_", "triton.", "torch.")
