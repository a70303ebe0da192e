"""Computes the features of a kernel from its syntax: the key under which similar kernels' pairs are found."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.name_paths import all_import_paths, dotted_path
from accelopt_profiling.source_text import syntax_of

#: Width of the windows over the normalised tree, and how many hashes are kept (the smallest: a bottom-k
#: sketch, A. Broder, "On the resemblance and containment of documents", 1997), in so many hexadecimal digits.
SHINGLE_WIDTH = 4
SHINGLES_KEPT, SHINGLE_DIGITS = 32, 8
_SHINGLE = re.compile(rf"[0-9a-f]{{1,{SHINGLE_DIGITS}}}")

_DTYPES = frozenset(
    [
        "float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "float8e4nv",
        "float8e5", "tfloat32", "fp64", "fp32", "fp16", "bf16", "fp8", "int64", "int32", "int16",
        "int8", "int1", "uint64", "uint32", "uint16", "uint8", "bool_",
    ]
)  # fmt: skip
#: Import paths that mean the same thing in the two generations of NKI, and the short name both get.
_MODULES = (
    ("neuronxcc.nki.language", "nl"),
    ("neuronxcc.nki.isa", "nisa"),
    ("neuronxcc.nki", "nki"),
    ("nki.language", "nl"),
    ("nki.isa", "nisa"),
    ("triton.language.extra.libdevice", "libdevice"),
    ("triton.language.extra.cuda.libdevice", "libdevice"),
    ("triton.language", "tl"),
)


@dataclass(frozen=True)
class KernelFeatures:
    """The structure of one kernel, independent of its names, numbers, comments and layout.

    ``calls`` counts called functions by dotted name (aliases resolved); ``shingles`` are hashes of the windows over the
    tree's node labels; ``loops`` lists the loops by nesting depth and iterator ("1:nl.affine_range"); ``bound`` is what
    limits the kernel, None when it was not measured.
    """

    dialect: Dialect
    calls: dict[str, int] = field(default_factory=dict)
    shingles: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    bound: str | None = None

    def __post_init__(self) -> None:
        shingles = tuple(s[:SHINGLE_DIGITS] for s in self.shingles[:SHINGLES_KEPT])
        object.__setattr__(self, "shingles", shingles)  # an older version kept more, and longer ones


def check_features(features: KernelFeatures) -> None:
    """Check features that another program wrote.

    Raises ValueError: a count is below 1, or a shingle is no hash.
    """
    if min(features.calls.values(), default=1) < 1:
        raise ValueError("a call that is counted less than once")
    if not all(_SHINGLE.fullmatch(shingle) for shingle in features.shingles):
        raise ValueError("a shingle that is no hexadecimal number")


def kernel_features(text: str, kernel: str | None = None, bound: str | None = None) -> KernelFeatures:
    """Return the features of ``kernel`` in the source ``text``, of its first launched kernel when None.

    Functions of the same file that the kernel calls count as part of it.

    Raises:
        ValueError: the file does not parse or has no such kernel.
    """
    source = find_kernels(text)
    launched = source.launched or list(source.kernels)
    kernels = launched[:1] if kernel is None else [k for k in source.kernels if k.name == kernel]
    if not kernels:
        why = source.findings[0].message if source.findings else f"It has no kernel {kernel or 'at all'}."
        raise ValueError(f"No features: {why}")
    tree = syntax_of(text)
    names = {name: path.lstrip(".") for name, path in all_import_paths(tree).items()}
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
    root = next(
        n
        for n in ast.walk(tree)
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.lineno == kernels[0].line
    )
    calls: Counter[str] = Counter()
    labels: list[str] = []
    loops: list[str] = []
    dtypes: set[str] = set()
    for function in _reached(root, functions):
        labels.append("def")
        for node, depth in _walk(function):
            labels.append(_label(node, names))
            if isinstance(node, ast.Call) and (name := _dotted(node.func, names)):
                calls[name] += 1
            elif isinstance(node, ast.For):
                over = _dotted(node.iter.func, names) if isinstance(node.iter, ast.Call) else None
                loops.append(f"{depth}:{over or 'other'}")
            elif isinstance(node, ast.While):
                loops.append(f"{depth}:while")
            elif isinstance(node, ast.Attribute) and node.attr in _DTYPES:
                dtypes.add(node.attr)
    return KernelFeatures(
        dialect=kernels[0].dialect,
        calls=dict(sorted(calls.items())),
        shingles=_shingles(labels),
        loops=tuple(sorted(loops)),
        dtypes=tuple(sorted(dtypes)),
        bound=bound,
    )


def _reached(
    root: ast.AST, functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef]
) -> Iterator[ast.AST]:
    """``root`` and the functions of the file that it calls by name, each once, in the order of first call."""
    queue, visited = [root], {id(root)}
    while queue:
        function = queue.pop(0)
        yield function
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                callee = functions.get(node.func.id)
                if callee is not None and id(callee) not in visited:
                    visited.add(id(callee))
                    queue.append(callee)


def _walk(function: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    """Yield the nodes below ``function`` in source order with their loop depth (1 inside the outermost loop).

    Docstrings, annotations and decorators are left out. Iterative: a deep tree must not exhaust the stack.
    """
    body = getattr(function, "body", [])
    stack: list[tuple[ast.AST, int]] = [(n, 0) for n in reversed(body)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, (ast.For, ast.While)):
            depth += 1
        yield node, depth
        stack.extend((child, depth) for child in reversed(list(ast.iter_child_nodes(node))))


def _label(node: ast.AST, names: dict[str, str]) -> str:
    if isinstance(node, ast.Call):
        return f"call {_dotted(node.func, names) or '?'}"
    if isinstance(node, ast.Constant):
        return type(node.value).__name__
    return type(node).__name__


def _dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    path = dotted_path(node, lambda name: names.get(name, name))
    if path is None:  # of a method of a value the name still says what is done
        return f"?.{node.attr}" if isinstance(node, ast.Attribute) else None
    for long, short in _MODULES:
        if path == long or path.startswith(long + "."):
            return short + path[len(long) :]
    return path


def _shingles(labels: list[str]) -> tuple[str, ...]:
    windows = {
        "\0".join(labels[i : i + SHINGLE_WIDTH]) for i in range(max(1, len(labels) - SHINGLE_WIDTH + 1))
    }
    hashes = sorted(hashlib.blake2s(w.encode(), digest_size=5).hexdigest() for w in windows)
    return tuple(hashes)
