"""Behaviour that depends on what an honest result cannot depend on: the environment, the clock, a count of calls,
chance, or an address.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from accelopt_profiling.gate.reading.names import ResolvedNames, StaticFinding, local_names
from accelopt_profiling.gate.reading.weights import of_the_model


class Cause(Enum):
    """What an honest result cannot depend on: in words for a reader, and the names of what tells it."""

    ENVIRONMENT = "the environment", "os.environ os.getenv"
    CLOCK = "the clock", "time datetime"
    CHANCE = (
        "chance",
        "random secrets uuid numpy.random "
        "torch.rand torch.randn torch.randint torch.initial_seed torch.get_rng_state",
    )
    COMMAND_LINE = "the command line", "sys.argv sys.orig_argv"
    HOST = "the host", "platform socket.gethostname os.uname os.cpu_count"
    ADDRESS = "an address", "id"
    PROCESS = "the process", "os.getpid os.getppid resource"
    FILES = (
        "files",
        "os.path.exists os.listdir os.path.isfile os.path.isdir os.path.lexists os.stat os.access",
    )
    DEBUGGER = "the debugger", "sys.gettrace sys.getprofile"
    FOLDER = "the folder", "os.getcwd"
    CAPTURE = "graph capture", "torch.cuda.is_current_stream_capturing"
    CALLER = "the caller", "inspect.stack"
    LOADED = "what else is loaded", "sys.modules"
    INTERPRETATION = "how kernels are run", "triton.knobs"
    INTERPRETER = "the interpreter", "sys.flags"
    THREADS = "threads", "threading.active_count threading.enumerate"
    MAKING = "how a library is made", ""
    CALLS = "how often it was called", ""

    def __init__(self, words: str, names: str) -> None:
        self.words, self.names = words, names.split()


_SOURCES = {name: cause for cause in Cause for name in cause.names}
#: Attributes that tell what made an object, and where it was made.
_MAKINGS = frozenset(
    ["__name__", "__qualname__", "__module__", "__class__", "__file__", "__path__", "__spec__"]
)
_METHODS = {
    "data_ptr": Cause.ADDRESS,
    "is_current_stream_capturing": Cause.CAPTURE,
    "_version": Cause.ADDRESS,
    "exists": Cause.FILES,
    "is_file": Cause.FILES,
    "is_dir": Cause.FILES,
    "untyped_storage": Cause.ADDRESS,
    "__hash__": Cause.ADDRESS,
}


#: Bytes of the widest access of a device that alignment matters to: a warp's line of its cache (CUDA C++ Programming
#: Guide, "Device Memory Accesses").
_WIDEST_ACCESS = 128


def branching(names: ResolvedNames) -> Iterator[StaticFinding]:
    """Yield branches on such a source whose body returns, launches or writes a result."""
    tainted = _tainted(names)
    counters = set(_counters(names))
    for node in ast.walk(names.tree):
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            why = _depends(names, node.test, tainted) or _counted(names, node.test, counters)
            if names.in_kernel(node) and not (names.traced and why in _OF_THE_HOST):
                continue
            if why and names.function_of(node) is not None and _decides(names, node, why):
                message = f"What it does depends on {why.words}."
                sure = why not in (Cause.FILES, Cause.HOST) or _steers(names, node)
                yield StaticFinding("mode-branch", why.name, node.lineno, message, sure)
        elif isinstance(node, ast.Call) and names.launches(ast.Expr(node)) and not names.in_kernel(node):
            yield from _given_to_a_kernel(names, node, tainted)
        yield from _address_keys(names, node, tainted)


#: What a kernel can branch on while it is traced, by a name of its module.
_OF_THE_HOST = frozenset([Cause.ENVIRONMENT, Cause.COMMAND_LINE, Cause.PROCESS])

#: What tells a test from real use and can be no option of a kernel.
_OF_THE_RUN = frozenset([Cause.LOADED, Cause.INTERPRETATION, Cause.DEBUGGER, Cause.CALLER])


def _given_to_a_kernel(
    names: ResolvedNames, launch: ast.Call, tainted: dict[str, Cause]
) -> Iterator[StaticFinding]:
    """Arguments of a launch that come from what tells a test from real use; files and the environment hold options."""
    for value in [*launch.args, *(k.value for k in launch.keywords)]:
        why = _depends(names, value, tainted)
        if why and (why in _OF_THE_RUN or why in (Cause.ENVIRONMENT, Cause.FILES)):
            message = f"What a kernel is given depends on {why.words}."
            yield StaticFinding(
                "mode-branch", f"launch {why.name}", launch.lineno, message, why in _OF_THE_RUN
            )


def _depends(names: ResolvedNames, test: ast.AST, tainted: dict[str, Cause]) -> Cause | None:
    for node in ast.walk(test):
        held = None if _is_called(names, node) or _is_searched(names, node) else _key(names, node)
        if held is not None and held in tainted:
            return tainted[held]
        source = _source(names, node)
        if source and not (source == Cause.ADDRESS and _alignment(names, node)):
            return source
    return None


def _is_searched(names: ResolvedNames, node: ast.AST) -> bool:
    """``key not in chosen`` asks for a key, whatever the values came from."""
    parent = names.parents.get(node)
    found = isinstance(parent, ast.Compare) and isinstance(parent.ops[0], (ast.In, ast.NotIn))
    return found and isinstance(parent, ast.Compare) and parent.comparators[0] is node


def _is_called(names: ResolvedNames, node: ast.AST) -> bool:
    parent = names.parents.get(node)
    return isinstance(parent, ast.Call) and parent.func is node


def _key(names: ResolvedNames, node: ast.AST) -> str | None:
    """Return what holds a value: a name where it is bound, or an attribute of whatever object; a call holds what its
    function returns.
    """
    if isinstance(node, ast.Call):
        held = _key(names, node.func)
        return f"{held}()" if held else None
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return names.scoped(node, node.id) if isinstance(node, ast.Name) else None


def _source(names: ResolvedNames, node: ast.AST) -> Cause | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        why = _METHODS[node.func.attr]
        return None if why == Cause.ADDRESS and of_the_model(names, node.func.value) else why
    if isinstance(node, ast.Attribute) and node.attr == "_version":
        return None if of_the_model(names, node.value) else Cause.ADDRESS
    if isinstance(node, ast.Attribute) and node.attr in _MAKINGS and _foreign(names, node.value):
        return Cause.MAKING
    dotted = names.dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    if dotted is None:
        return None
    for name, source in _SOURCES.items():
        if dotted == name or dotted.startswith(f"{name}."):
            return source
    return None


def _foreign(names: ResolvedNames, node: ast.expr) -> bool:
    """Return an object of a library, a kernel, or the class of one: ``nki``,
    ``type(triton.runtime.driver.active)``."""
    if isinstance(node, ast.Call) and names.dotted(node.func) == "type" and node.args:
        return _foreign(names, node.args[0])
    if isinstance(node, ast.Attribute) and node.attr in _MAKINGS:
        return _foreign(names, node.value)
    return names.dotted(node) is not None or (isinstance(node, ast.Name) and node.id in names.kernels)


def _alignment(names: ResolvedNames, node: ast.AST) -> bool:
    """``x.data_ptr() % 16``: whether memory is aligned is a fair question, as far as an access can be wide."""
    parent = names.parents.get(node)
    while isinstance(parent, (ast.Call, ast.Attribute)) or (
        isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.BitOr)
    ):
        node, parent = parent, names.parents.get(parent)
    if not isinstance(parent, ast.BinOp) or not isinstance(parent.op, (ast.Mod, ast.BitAnd)):
        return False
    other = parent.right if parent.left is node else parent.left
    if isinstance(other, ast.Constant) and isinstance(other.value, int):
        return other.value <= _WIDEST_ACCESS - isinstance(parent.op, ast.BitAnd)
    return isinstance(other, (ast.Name, ast.Attribute, ast.Call))


def _tainted(names: ResolvedNames) -> dict[str, Cause]:
    """Names, attributes and functions' results that come from a source, directly or through others."""
    found: dict[str, Cause] = {}
    for _ in range(4):
        before = len(found)
        for held, value in _bindings(names):
            why = _depends(names, value, found)
            if why and held not in found and not _is_number_of(names, value):
                found[held] = why
        if len(found) == before:
            break
    return found


def _bindings(names: ResolvedNames) -> Iterator[tuple[str, ast.expr]]:
    """Return what holds which expression: assignments, fields of classes, arguments by keyword, and what functions
    return.
    """
    for node in ast.walk(names.tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            if node.value is None:
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                    held = _key(names, part.value if isinstance(part, ast.Subscript) else part)
                    if held is not None:
                        yield held, node.value
                        if isinstance(node.value, ast.Lambda):
                            yield f"{held}()", node.value.body
                        if isinstance(names.parents.get(node), ast.ClassDef):
                            yield f".{part.id if isinstance(part, ast.Name) else held}", node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names.defined:
            for keyword in node.keywords:
                if keyword.arg and node.func.id[:1].isupper():
                    yield f".{keyword.arg}", keyword.value
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            ordered = [*node.args.posonlyargs, *node.args.args]
            given = zip(ordered[len(ordered) - len(node.args.defaults) :], node.args.defaults, strict=True)
            named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            for argument, default in [*given, *named]:
                if default is not None:
                    yield f"{argument.arg}@{node.lineno}", default
        elif isinstance(node, ast.Return) and node.value is not None:
            function = names.function_of(node)
            if function is not None and function.name not in names.kernels:
                method = isinstance(names.parents.get(function), ast.ClassDef)
                is_property = any("property" in ast.dump(d) for d in function.decorator_list)
                name = f".{function.name}" if method else names.scoped(function, function.name)
                yield name if is_property else f"{name}()", node.value


def _is_number_of(names: ResolvedNames, value: ast.expr) -> bool:
    """``int(os.environ.get("BLOCK", 128))``: a tuning parameter, not a switch."""
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("int", "float")
    )


def _decides(names: ResolvedNames, node: ast.If | ast.While | ast.IfExp, why: Cause) -> bool:
    """Check whether the branch changes a result: it launches, returns or computes something, or writes into something.
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
            if computed or why != Cause.CLOCK:
                return True
        if (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and inner.func.attr.endswith("_")
        ):
            return True
    return False


def _steers(names: ResolvedNames, node: ast.If | ast.While | ast.IfExp) -> bool:
    """Check whether the branch decides if or on what a kernel is launched, rather than how it is configured."""
    if not isinstance(node, ast.IfExp):
        return names.launches(ast.Module([*node.body, *node.orelse], []))
    place = names.parents.get(node)
    while place is not None and not isinstance(place, ast.stmt):
        if isinstance(place, ast.Call) and names.launches(place):
            return True
        place = names.parents.get(place)
    return False


def _is_choice(value: ast.expr) -> bool:
    """Return a constant, a name in capitals, a configuration made of such, or a collection: a parameter, not
    a result."""
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return all(_is_choice(v) for v in value.elts)
    if isinstance(value, ast.Dict):
        return all(_is_choice(v) for v in value.values)
    if isinstance(value, ast.Name):
        return value.id.isupper()
    if isinstance(value, ast.Call) and getattr(value.func, "attr", getattr(value.func, "id", "")) == "Config":
        return all(_is_choice(v) for v in [*value.args, *(k.value for k in value.keywords)])
    return isinstance(value, ast.Constant)


def _address_keys(names: ResolvedNames, node: ast.AST, tainted: dict[str, Cause]) -> Iterator[StaticFinding]:
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
            named = isinstance(inner, ast.Name) and tainted.get(_key(names, inner) or "") == Cause.ADDRESS
            if named or (_source(names, inner) == Cause.ADDRESS and not _alignment(names, inner)):
                message = "It looks something up by an address."
                yield StaticFinding("cached-result", "address", getattr(node, "lineno", 1), message, True)
                return


def _counters(names: ResolvedNames) -> Iterator[str]:
    """Yield global names, attributes and list lengths that a function advances each time it is called."""
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
            if (target := _advanced(node)) is not None:
                if isinstance(target, ast.Name) and target.id in shared:
                    yield names.scoped(target, target.id)
                elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    yield f"{target.value.id}.{target.attr}"
                elif (
                    isinstance(target, ast.Subscript)
                    and isinstance(target.value, ast.Name)
                    and target.value.id not in local_names(function)
                ):
                    yield f"{names.scoped(target, target.value.id)}[]"
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "append"
            ):
                base = node.func.value
                if isinstance(base, ast.Name) and base.id not in local_names(function):
                    yield f"len({names.scoped(base, base.id)})"
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "next"
                and node.args
                and isinstance(node.args[0], ast.Name)
                and node.args[0].id not in local_names(function)
            ):
                yield f"next({names.scoped(node, node.args[0].id)})"


def _advanced(node: ast.AST) -> ast.expr | None:
    """Return what ``x += 1`` and ``x = x + 1`` move on."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
        return node.target
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        target, value = node.targets[0], node.value
        if isinstance(value.op, (ast.Add, ast.Sub)) and ast.unparse(target) in (
            ast.unparse(value.left), ast.unparse(value.right)
        ):  # fmt: skip
            return target
    return None


def _counted(names: ResolvedNames, test: ast.AST, counters: set[str]) -> Cause | None:
    """Return the cause of a ``test`` of one of the ``counters``; None where it looks at none."""
    for node in ast.walk(test):
        key = None
        if isinstance(node, ast.Name):
            key = names.scoped(node, node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            key = f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            key = f"{names.scoped(node, node.value.id)}[]"
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.args
            and isinstance(node.args[0], ast.Name)
        ):
            key = f"{node.func.id}({names.scoped(node, node.args[0].id)})"
        if key in counters:
            return Cause.CALLS
    return None
