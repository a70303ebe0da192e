"""Computes a kernel's features, by which similar kernels are found.

They are packed into a few hundred bytes, and many packed ones compared with one at once. A packed kernel is a header
(how many items and shingles, a hash of the bound), the items, their counts and the shingles, all little-endian. An item
is a called function, a loop or a data type: 30 bits of a hash of its name below two bits for which of these it is. The
names are packed beside it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.name_paths import all_import_paths, dotted_path
from accelopt_profiling.source_text import syntax_of

if TYPE_CHECKING:
    import numpy as np


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


#: The weight of each part. A part that neither kernel has says nothing and is left out of the sum.
WEIGHTS = {"calls": 0.45, "shingles": 0.30, "loops": 0.10, "dtypes": 0.05, "bound": 0.10}
#: The most items of a kernel that are compared at once; of those that have more, the score is an estimate.
ITEMS = 40
_HEADER = struct.Struct("<BBI")
_KINDS = ("calls", "loops", "dtypes")
_MOST_COUNT = 255
#: What the names of most kernels hold, for compression.
_COMMON = (
    b'["?.to","nl.arange","nl.affine_range","nl.load","nl.ndarray","nl.store","nl.par_dim","nl.zeros","nisa.activation",'
    b'"nisa.nc_matmul","nisa.tensor_tensor","nisa.tensor_scalar","nisa.tensor_copy","tl.arange","tl.cdiv","tl.dot","tl.exp",'
    b'"tl.load","tl.max","tl.maximum","tl.num_programs","tl.program_id","tl.static_range","tl.store","tl.sum","tl.where",'
    b'"tl.zeros","range"],["1:range","2:range","1:nl.affine_range","2:nl.affine_range","1:tl.range"],["bfloat16","float16",'
    b'"float32","int32","int64"]'
)


def pack(features: KernelFeatures) -> tuple[bytes, bytes]:
    """Return the packed kernel, and its names, which ``unpack`` needs besides."""
    counts = _counted(features)
    items = [(_item(kind, name), min(count, _MOST_COUNT)) for kind, name, count in counts][:255]
    shingles = [_number(s) for s in features.shingles[:SHINGLES_KEPT]]
    packed = _HEADER.pack(len(items), len(shingles), _bound(features.bound))
    packed += struct.pack(f"<{len(items)}I", *(item for item, _ in items)) + bytes(
        count for _, count in items
    )
    packed += struct.pack(f"<{len(shingles)}I", *shingles)
    names = [[n for k, n, _ in counts if k == kind] for kind in range(3)]
    plain = json.dumps([*names, features.bound, list(features.calls.values())], separators=(",", ":"))
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=_COMMON)
    return packed, squeezed.compress(plain.encode("utf-8", "surrogatepass")) + squeezed.flush()


def unpack(dialect: Any, packed: bytes, names: bytes) -> KernelFeatures:
    """Return the features that ``pack`` packed.

    Raises:
        ValueError: these are no packed features.
    """
    try:
        plain = zlib.decompressobj(-15, zdict=_COMMON).decompress(names).decode("utf-8", "surrogatepass")
        calls, loops, dtypes, bound, call_counts = json.loads(plain)
        count, shingles, _ = _HEADER.unpack_from(packed)
        at = _HEADER.size + 4 * count
        counts = packed[at : at + count]
        hashes = struct.unpack_from(f"<{shingles}I", packed, at + count)
    except (zlib.error, struct.error, TypeError) as error:
        raise ValueError(f"no packed features: {error}") from None
    rest = [1] * (len(loops) + len(dtypes))
    rest[: max(0, count - len(calls))] = counts[len(calls) :]
    loops = [name for name, times in zip(loops, rest, strict=False) for _ in range(times)]
    return KernelFeatures(
        dialect, dict(zip(calls, call_counts, strict=True)), shingles=tuple(f"{h:08x}" for h in hashes),
        loops=tuple(loops), dtypes=tuple(dtypes), bound=bound,
    )  # fmt: skip


def _counted(features: KernelFeatures) -> list[tuple[int, str, int]]:
    """Return kind, name and count of every item."""
    parts: list[dict[str, int]] = [features.calls, Counter(features.loops), Counter(features.dtypes)]
    return [(kind, name, count) for kind, part in enumerate(parts) for name, count in part.items()]


def _number(shingle: str) -> int:
    try:
        return int(shingle[:SHINGLE_DIGITS], 16)
    except ValueError:  # of an import that nobody made with this program
        return zlib.crc32(shingle.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=4096)
def _item(kind: int, name: str) -> int:
    digest = hashlib.blake2s(name.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return (int.from_bytes(digest, "little") & 0x3FFFFFFF) | (kind + 1) << 30 & 0xFFFFFFFF


@lru_cache(maxsize=256)
def _bound(bound: str | None) -> int:
    if bound is None:
        return 0
    digest = hashlib.blake2s(bound.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "little") | 1


#: One packed kernel as a row of fixed length: items, counts, shingles, bound.
ROW_BYTES = 4 * ITEMS + ITEMS + 4 * SHINGLES_KEPT + 4
_PAD = 0xFFFFFFFF


def fixed_row(packed: bytes) -> bytes:
    """Return the packed kernel with its parts at fixed places, shingles padded with the largest number."""
    items, shingles, bound = _HEADER.unpack_from(packed)
    at = _HEADER.size + 4 * items
    return b"".join(
        (
            packed[_HEADER.size : at][: 4 * ITEMS].ljust(4 * ITEMS, b"\0"),
            packed[at : at + items][:ITEMS].ljust(ITEMS, b"\0"),
            packed[at + items : at + items + 4 * min(shingles, SHINGLES_KEPT)].ljust(
                4 * SHINGLES_KEPT, b"\xff"
            ),
            bound.to_bytes(4, "little"),
        )
    )


def similarities(features: KernelFeatures, rows: Sequence[bytes]) -> np.ndarray[Any, Any]:
    """Return the similarity of ``features`` with each of the fixed ``rows``.

    It is the weighted mean of the parts' Jaccard indices: 0 for nothing in common, 1 for the same structure.
    """
    import numpy as np

    table = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, ROW_BYTES)
    own = np.frombuffer(fixed_row(pack(features)[0]), dtype=np.uint8).reshape(1, ROW_BYTES)
    items, counts, shingles, bounds = _columns(table)
    own_items, own_counts, own_shingles, own_bound = _columns(own)
    used = int((own_counts[0] > 0).sum())
    equal = items[:, :, None] == own_items[0, None, :used][None]
    shared = np.minimum(counts[:, :, None], own_counts[0, :used]) * equal
    common = shared.sum(axis=2, dtype=np.int32)
    total, weights = np.zeros(len(table)), np.zeros(len(table))
    for kind, name in enumerate(_KINDS):
        mine = items >> 30 == (kind + 1) & 3
        both = (common * mine).sum(axis=1)
        size = (counts * mine).sum(axis=1, dtype=np.int32)
        own_size = int((own_counts[0].astype(np.int32) * (own_items[0] >> 30 == (kind + 1) & 3)).sum())
        most = size + own_size - both
        weight = WEIGHTS[name] * (most > 0)
        total += weight * both / np.maximum(most, 1)
        weights += weight
    coverage, score = _bottom_k(shingles, own_shingles[0])
    total += WEIGHTS["shingles"] * coverage * score
    weights += WEIGHTS["shingles"] * coverage
    both_bound = (bounds[:, 0] > 0) & (own_bound[0, 0] > 0)
    total += WEIGHTS["bound"] * (both_bound & (bounds[:, 0] == own_bound[0, 0]))
    weights += WEIGHTS["bound"] * both_bound
    result: np.ndarray[Any, Any] = np.minimum(1.0, total / np.where(weights > 0, weights, 1.0))
    return result


def _columns(table: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    import numpy as np

    ends = np.cumsum([4 * ITEMS, ITEMS, 4 * SHINGLES_KEPT, 4])
    items, counts, shingles, bound = (
        np.ascontiguousarray(table[:, a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)
    )
    return items.view("<u4"), counts, shingles.view("<u4"), bound.view("<u4")


def _bottom_k(
    rows: np.ndarray[Any, Any], own: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return whether either side has shingles, and the Jaccard index of the smallest of both."""
    import numpy as np

    rows, own = np.sort(rows, axis=1), np.sort(own)
    smaller = np.searchsorted(own, rows)  # how many of ``own``
    equal = (own[np.minimum(smaller, SHINGLES_KEPT - 1)] == rows) & (rows != _PAD)
    equal_before = np.cumsum(equal, axis=1) - equal
    rank = np.arange(SHINGLES_KEPT) + smaller - equal_before  # among both
    union = (rows != _PAD).sum(axis=1) + (own != _PAD).sum() - equal.sum(axis=1)
    shared = (equal & (rank < SHINGLES_KEPT)).sum(axis=1)
    return union > 0, shared / np.clip(union, 1, SHINGLES_KEPT)
