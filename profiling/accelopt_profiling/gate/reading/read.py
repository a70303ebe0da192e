"""Read a candidate's text before anything of it is run."""

from __future__ import annotations

import ast
from dataclasses import replace

from accelopt_profiling.gate.reading.branching import branching
from accelopt_profiling.gate.reading.constant_folding import plain_spelling
from accelopt_profiling.gate.reading.escaping import escaping
from accelopt_profiling.gate.reading.fallback import fallbacks
from accelopt_profiling.gate.reading.forbidden_names import TF32, low_precision, reaching
from accelopt_profiling.gate.reading.names import ResolvedNames, StaticFinding
from accelopt_profiling.gate.reading.obfuscation import obfuscation
from accelopt_profiling.gate.reading.patching import patching
from accelopt_profiling.gate.reading.rare_values import rare_values
from accelopt_profiling.gate.reading.shape_special_cases import size_limits, special_shapes
from accelopt_profiling.source_text import is_main_guard, parse_python

#: What no rewrite has a reason to do where the original does not: told of a kernel by itself, it refuses a rewrite.
_HOST_MATTERS = frozenset(
    [
        "background-work",
        "fallback",
        "mode-branch",
        "reads-clock",
        "reads-environment",
        "reads-files",
        "reads-the-gate",
    ]
)
_READERS = (reaching, patching, fallbacks, branching, escaping, low_precision, special_shapes)
#: How functions are called that belong to a problem, a test or a benchmark in the kernel's own file.
_NOT_KERNEL = (
    "get_inputs",
    "get_init_inputs",
    "reference",
    "forward",
    "transform_",
    "test_",
    "bench",
    "main",
    "Model",
)


def read(text: str, original: str = "") -> list[StaticFinding]:
    """Findings about the code of ``text`` that runs as part of its kernels, in the order of lines.

    The problem's functions, tests and the ``__main__`` block are left out. What ``original`` does as well is no
    finding about its rewrite: it is told, but is not certain; what it does not do on the host is certain. Text that
    does not parse gives no finding.
    """
    try:
        found = _read(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if original and original != text:
        try:
            before = {(f.code, f.subject) for f in _read(original)}
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            before = set()
        found = [_beside_the_original(f, (f.code, f.subject) in before) for f in found]
        found += _lowered_products(found, before)
    return sorted(set(found), key=lambda f: (not f.certain, f.line, f.code, f.subject))


def _beside_the_original(finding: StaticFinding, in_both: bool) -> StaticFinding:
    if in_both:
        return replace(finding, certain=False)
    if finding.certain or finding.code not in _HOST_MATTERS:
        return finding
    return replace(finding, message=f"{finding.message} The original does not.", certain=True)


def uses_files(text: str) -> bool:
    """Check whether anything in a file reads or writes files, its tests and its main block included."""
    try:
        names = ResolvedNames(text, parse_python(text))
        return any(f.code in ("reads-files", "writes-outside") for f in reaching(names))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def limits_of_sizes(text: str, original: str = "") -> list[int]:
    """Return the numbers that a rewrite compares something with by order and ``original`` does not: there may be
    another way of computing on the other side. Of a text without another original all of them.
    """
    try:
        own, before = (set(_limits(t)) for t in (text, "" if original == text else original))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return sorted(own - before)


def _limits(text: str) -> list[int]:
    written = ast.Module(_of_kernels(parse_python(text)), [])
    return list(size_limits(ResolvedNames(text, written)))


def named_values(text: str, original: str = "") -> list[float]:
    """Return values that a rewrite's kernels may compare data with and the ``original``'s do not. Of a text without
    another original all of them."""
    try:
        own, before = (_values(t) for t in (text, "" if original == text else original))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [value for value in own if value not in before]


def _values(text: str) -> list[float]:
    written = ast.Module(_of_kernels(parse_python(text)), [])
    return rare_values(ResolvedNames(text, plain_spelling(written)))


def _lowered_products(found: list[StaticFinding], before: set[tuple[str, str]]) -> list[StaticFinding]:
    """Products of float32 that the original takes in full and a rewrite in TF32. It counts where inputs are float32."""
    codes, subjects = {code for code, _ in before}, {subject for _, subject in before}
    if "full-precision" not in codes or subjects & TF32:
        return []
    return [
        replace(f, code="lowered-products", message=f"{f.message} The original multiplies float32 in full.")
        for f in found
        if f.subject in TF32
    ]


def _read(text: str) -> list[StaticFinding]:
    tree = parse_python(text)
    written = ast.Module(_of_kernels(tree), [])
    names = ResolvedNames(text, plain_spelling(written))
    found = [finding for reader in _READERS for finding in reader(names)]
    return [*found, *obfuscation(ResolvedNames(text, written))]


def _of_kernels(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that run when the kernels are used: all but a problem's functions, tests and the
    main block, unless something else of the file uses those."""
    aside = {
        node.name: node
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and node.name.startswith(_NOT_KERNEL)
        and node.name != "ModelNew"
    }
    kept = [n for n in tree.body if n not in aside.values() and not _runs_as_main(n)]
    waiting = list(kept)
    while waiting:
        statement = waiting.pop()
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Name) and inner.id in aside:
                node = aside.pop(inner.id)
                kept.append(node)
                waiting.append(node)
    return kept


def _runs_as_main(node: ast.stmt) -> bool:
    """``if __name__ == "__main__":`` and nothing else."""
    return (
        is_main_guard(node)
        and isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.ops[0], ast.Eq)
        and len(node.test.ops) == 1
        and not node.orelse
    )
