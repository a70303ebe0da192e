"""Find branches, launches and look-ups that depend on what an honest result cannot depend on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.facts import StaticFinding, at, below
from accelopt_profiling.gate.reading.flow import Flow
from accelopt_profiling.gate.reading.vocabulary import CAUSES

_Branch = ast.If | ast.While | ast.IfExp
#: What a kernel can branch on while it is traced, by a name of its module.
_OF_THE_HOST = ("ENVIRONMENT", "COMMAND_LINE", "PROCESS")
#: What tells a test from real use and can be no option of a kernel.
_OF_THE_RUN = ("LOADED", "INTERPRETATION", "DEBUGGER", "CALLER")


def branches(flow: Flow, node: ast.AST) -> Iterator[StaticFinding]:
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            yield from _branch(flow, node)
        case ast.Call() if flow.facts.launches(node) and not flow.facts.kernels_around(node):
            # what tells a test from real use, or files and the environment, which hold options too
            for cause in map(flow.cause, [*node.args, *(k.value for k in node.keywords)]):
                if cause in (*_OF_THE_RUN, "ENVIRONMENT", "FILES"):
                    message = f"What a kernel is given depends on {CAUSES[cause]}."
                    yield at(
                        node,
                        "mode-branch",
                        subject=f"launch {cause}",
                        message=message,
                        certain=cause in _OF_THE_RUN,
                    )
    match node:
        case (
            ast.Subscript(_, key)
            | ast.Compare(key, [ast.In() | ast.NotIn(), *_])
            | ast.Call(ast.Attribute(attr="get" | "setdefault" | "pop"), [key, *_])
        ) if any(_is_address(flow, n) for n in ast.walk(key)):
            # ``CACHE[x.data_ptr()]``, ``id(x) in CACHE``, ``CACHE.get((x.data_ptr(), x.shape))``
            yield at(
                node,
                "cached-result",
                subject="address",
                message="It looks something up by an address.",
                certain=True,
            )


def _is_address(flow: Flow, node: ast.AST) -> bool:
    held = flow.held.get(flow.key(node) or "") if isinstance(node, ast.Name) else None
    return "ADDRESS" in (held, flow.source(node))


def _branch(flow: Flow, node: _Branch) -> Iterator[StaticFinding]:
    """Yield a branch on such a cause whose body returns, launches or writes a result."""
    facts = flow.facts
    cause = flow.cause(node.test) or ("CALLS" if flow.counts(node.test) else None)
    if cause is None or facts.function_of(node) is None:
        return
    is_traced = facts.traced and cause in _OF_THE_HOST
    if (is_traced or not facts.kernels_around(node)) and _decides(flow, node, cause):
        certain = cause not in ("FILES", "HOST") or _steers(flow, node)
        yield at(
            node,
            "mode-branch",
            subject=cause,
            message=f"What it does depends on {CAUSES[cause]}.",
            certain=certain,
        )


def _decides(flow: Flow, node: _Branch, cause: str) -> bool:
    """Check whether the branch changes a result: it launches, returns or computes something, or writes into something.

    Printing does not, nor does the choice of a constant. What is slowest or fastest may be chosen by the clock.
    """
    if isinstance(node, ast.IfExp):
        return not (_is_choice(node.body) and _is_choice(node.orelse))
    if flow.facts.launches(*node.body, *node.orelse):
        return True
    for inner in below(*node.body, *node.orelse):
        match inner:
            case ast.Return(ast.expr() as value) if not _is_choice(value):
                return True
            case ast.Assign(value=value) | ast.AugAssign(value=value) if not _is_choice(value):
                computed = (ast.Call, ast.BinOp, ast.Subscript)
                if cause != "CLOCK" or any(isinstance(n, computed) for n in ast.walk(value)):
                    return True
            case ast.Call(ast.Attribute(attr=method)) if method.endswith("_"):
                return True
    return False


def _steers(flow: Flow, node: _Branch) -> bool:
    """Check whether the branch decides if or on what a kernel is launched, rather than how it is configured."""
    if not isinstance(node, ast.IfExp):
        return flow.facts.launches(*node.body, *node.orelse)
    for place in flow.facts.above(node):
        if isinstance(place, ast.stmt):
            break
        if isinstance(place, ast.Call) and flow.facts.launches(place):
            return True
    return False


def _is_choice(value: ast.expr | None) -> bool:
    """Check whether a value is a parameter, not a result: a constant, a name in capitals, a configuration made of such,
    or a collection."""
    match value:
        case ast.Tuple(parts) | ast.List(parts) | ast.Set(parts) | ast.Dict(values=parts):
            return all(map(_is_choice, parts))
        case ast.Call(ast.Name("Config") | ast.Attribute(attr="Config"), parts, keywords):
            return all(map(_is_choice, [*parts, *(k.value for k in keywords)]))
        case ast.Name(name):
            return name.isupper()
    return isinstance(value, ast.Constant)
