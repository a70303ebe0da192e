"""Behaviour that depends on what an honest result cannot depend on: the environment, the clock, a count of calls,
chance, or an address.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.finding import StaticFinding
from accelopt_profiling.gate.reading.names import Function, Names

_SOURCES = {
    "os.environ": "the environment", "os.getenv": "the environment", "time": "the clock", "datetime": "the clock",
    "random": "chance", "secrets": "chance", "uuid": "chance", "numpy.random": "chance", "torch.rand": "chance",
    "torch.randn": "chance", "torch.randint": "chance", "sys.argv": "the command line", "platform": "the host",
    "socket.gethostname": "the host", "id": "an address", "os.getpid": "the process", "os.path.exists": "files",
    "sys.gettrace": "the debugger", "sys.getprofile": "the debugger", "os.getcwd": "the folder", "os.listdir": "files",
    "torch.cuda.is_current_stream_capturing": "graph capture", "inspect.stack": "the caller",
}  # fmt: skip
_METHODS = {
    "data_ptr": "an address",
    "is_current_stream_capturing": "graph capture",
    "_version": "an address",
}


def branching(names: Names) -> Iterator[StaticFinding]:
    """Branches on such a source whose body returns, launches or writes a result."""
    tainted = _tainted(names)
    counters = dict(_counters(names))
    for node in ast.walk(names.tree):
        if isinstance(node, (ast.If, ast.While, ast.IfExp)) and not names.in_kernel(node):
            why = _depends(names, node.test, tainted) or _counts(node.test, counters)
            if why and names.function_of(node) is not None and _decides(names, node, why):
                said = f"What it does depends on {why}."
                yield StaticFinding("mode-branch", node.lineno, said, why not in ("files", "the host"))
        yield from _address_keys(names, node, tainted)


def _depends(names: Names, test: ast.AST, tainted: dict[str, str]) -> str | None:
    for node in ast.walk(test):
        if isinstance(node, ast.Name) and node.id in tainted:
            return tainted[node.id]
        source = _source(names, node)
        if source and not (source == "an address" and _alignment(names, node)):
            return source
    return None


def _source(names: Names, node: ast.AST) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        return _METHODS[node.func.attr]
    if isinstance(node, ast.Attribute) and node.attr == "_version":
        return "an address"
    dotted = names.dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    if dotted is None:
        return None
    for name, source in _SOURCES.items():
        if dotted == name or dotted.startswith(f"{name}."):
            return source
    return None


def _alignment(names: Names, node: ast.AST) -> bool:
    """``x.data_ptr() % 16``: whether memory is aligned is a fair question."""
    parent = names.parents.get(node)
    while isinstance(parent, (ast.Call, ast.Attribute)):
        node, parent = parent, names.parents.get(parent)
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Mod, ast.BitAnd, ast.BitOr))


def _tainted(names: Names) -> dict[str, str]:
    """Names assigned from a source, directly or through another such name."""
    found: dict[str, str] = {}
    for _ in range(3):
        for node in ast.walk(names.tree):
            if isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets):
                why = _depends(names, node.value, found)
                if why and not _is_number_of(names, node.value):
                    found.update({t.id: why for t in node.targets if isinstance(t, ast.Name)})
    return found


def _is_number_of(names: Names, value: ast.expr) -> bool:
    """``int(os.environ.get("BLOCK", 128))``: a tuning parameter, not a switch."""
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("int", "float")
    )


def _counters(names: Names) -> Iterator[tuple[str, str]]:
    """Global names, attributes and list lengths that a function advances each time it is called."""
    for function in ast.walk(names.tree):
        if (
            not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            or function.name in names.kernels
        ):
            continue
        shared = {
            n
            for node in ast.walk(function)
            if isinstance(node, (ast.Global, ast.Nonlocal))
            for n in node.names
        }
        for node in ast.walk(function):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
                target = node.target
                if isinstance(target, ast.Name) and target.id in shared:
                    yield target.id, "how often it was called"
                elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    yield f"{target.value.id}.{target.attr}", "how often it was called"
                elif (
                    isinstance(target, ast.Subscript)
                    and isinstance(target.value, ast.Name)
                    and target.value.id not in _locals(function)
                ):
                    yield f"{target.value.id}[]", "how often it was called"
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "append"
            ):
                base = node.func.value
                if isinstance(base, ast.Name) and base.id not in _locals(function):
                    yield f"len({base.id})", "how often it was called"
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "next"
                and node.args
                and isinstance(node.args[0], ast.Name)
                and node.args[0].id not in _locals(function)
            ):
                yield f"next({node.args[0].id})", "how often it was called"


def _locals(function: Function) -> set[str]:
    return {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | {
        a.arg for a in function.args.args
    }


def _counts(test: ast.AST, counters: dict[str, str]) -> str | None:
    for node in ast.walk(test):
        key = None
        if isinstance(node, ast.Name):
            key = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            key = f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            key = f"{node.value.id}[]"
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.args
            and isinstance(node.args[0], ast.Name)
        ):
            key = f"{node.func.id}({node.args[0].id})"
        if key in counters:
            return counters[key]
    return None


def _decides(names: Names, node: ast.If | ast.While | ast.IfExp, why: str) -> bool:
    """Whether the branch changes a result: it launches, returns or computes something, or writes into something.
    Printing does not, nor does the choice of a constant. What is slowest or fastest may be chosen by the clock.
    """
    if isinstance(node, ast.IfExp):
        return not (_is_choice(node.body) and _is_choice(node.orelse))
    body = ast.Module([*node.body, *node.orelse], [])
    if names.launches(body):
        return True
    for inner in ast.walk(body):
        if isinstance(inner, ast.Return) and inner.value is not None and not _is_choice(inner.value):
            return True
        if isinstance(inner, (ast.Assign, ast.AugAssign)) and not _is_choice(inner.value):
            computed = any(isinstance(n, (ast.Call, ast.BinOp, ast.Subscript)) for n in ast.walk(inner.value))
            if computed or why != "the clock":
                return True
        if (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and inner.func.attr.endswith("_")
        ):
            return True
    return False


def _is_choice(value: ast.expr) -> bool:
    """A constant, a name in capitals, or a collection of such: a parameter, not a result."""
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return all(_is_choice(v) for v in value.elts)
    if isinstance(value, ast.Dict):
        return all(_is_choice(v) for v in value.values)
    if isinstance(value, ast.Name):
        return value.id.isupper()
    return isinstance(value, ast.Constant)


def _address_keys(names: Names, node: ast.AST, tainted: dict[str, str]) -> Iterator[StaticFinding]:
    """``CACHE[x.data_ptr()]``, ``id(x) in CACHE``, ``CACHE.get((x.data_ptr(), x.shape))``, also through a name."""
    keys: list[ast.expr] = []
    if isinstance(node, ast.Subscript):
        keys = [node.slice]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        keys = [node.left]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        keys = list(node.args[:1]) if node.func.attr in ("get", "setdefault", "pop") else []
    for key in keys:
        for inner in ast.walk(key):
            named = isinstance(inner, ast.Name) and tainted.get(inner.id) == "an address"
            if named or (_source(names, inner) == "an address" and not _alignment(names, inner)):
                yield StaticFinding(
                    "cached-result", getattr(node, "lineno", 1), "It looks something up by an address.", True
                )
                return
