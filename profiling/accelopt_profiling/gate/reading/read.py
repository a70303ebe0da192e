"""Read a candidate's text before anything of it is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from accelopt_profiling.gate.reading.branches import branches
from accelopt_profiling.gate.reading.constants import plain_spelling
from accelopt_profiling.gate.reading.escaping import escaping
from accelopt_profiling.gate.reading.facts import Facts, StaticFinding
from accelopt_profiling.gate.reading.fallback import fallback
from accelopt_profiling.gate.reading.flow import Flow
from accelopt_profiling.gate.reading.forbidden_names import forbidden
from accelopt_profiling.gate.reading.obfuscation import obfuscation
from accelopt_profiling.gate.reading.patching import patching
from accelopt_profiling.gate.reading.precision import lowered_products, precision
from accelopt_profiling.gate.reading.rare_values import rare_values
from accelopt_profiling.gate.reading.sizes import size_limits, special_shapes
from accelopt_profiling.gate.reading.vocabulary import WORDS
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.source_text import by_text, is_main_guard, syntax_of

_UNREADABLE = (SyntaxError, ValueError)
_TOO_DEEP = (RecursionError, MemoryError)
_NESTING = StaticFinding(
    "obfuscated", "nesting", line=1, message="It is nested more deeply than can be read.", certain=True
)
_Answer = TypeVar("_Answer")


def read(text: str, original: str = "") -> list[StaticFinding]:
    """Findings about the code of ``text`` that runs as part of its kernels, in the order of lines.

    The problem's functions, tests and the ``__main__`` block are left out. What ``original`` does as well is no
    finding about its rewrite: it is told, but is not certain; what it does not do on the host is certain. Text that
    does not parse gives no finding, one that is too deep to be read whole a certain one.
    """
    findings = _of(text, _findings, _NESTING)
    if findings and original not in ("", text):
        before = {(f.code, f.subject) for f in _of(original, _findings, _NESTING)}
        findings = [_beside_the_original(f, (f.code, f.subject) in before) for f in findings]
        findings += lowered_products(findings, before)
    return sorted(set(findings), key=lambda f: (not f.certain, f.line, f.code, f.subject))


def _beside_the_original(finding: StaticFinding, in_both: bool) -> StaticFinding:
    if in_both:
        return replace(finding, certain=False)
    if finding.certain or finding.code not in WORDS["host_matters"]:
        return finding
    return replace(finding, message=f"{finding.message} The original does not.", certain=True)


def uses_files(text: str) -> bool:
    """Check whether anything in a file reads or writes files, its tests and its main block included."""
    try:
        facts = Facts((), syntax_of(text))
        findings = (finding for node in facts.nodes for finding in forbidden(facts, node))
        return any(f.code in ("reads-files", "writes-outside") for f in findings)
    except (*_UNREADABLE, *_TOO_DEEP):
        return False


def limits_of_sizes(text: str, original: str = "") -> list[int]:
    """Return the numbers that a rewrite compares something with by order and ``original`` does not: there may be
    another way of computing on the other side. Of a text without another original all of them.
    """
    before = _of("" if original == text else original, size_limits)
    return sorted(set(_of(text, size_limits)) - set(before))


def named_values(text: str, original: str = "") -> list[float]:
    """Return values that a rewrite's kernels may compare data with and the ``original``'s do not. Of a text without
    another original all of them."""
    before = _of("" if original == text else original, _values)
    return [value for value in _of(text, _values) if value not in before]


def _values(facts: Facts) -> list[float]:
    return rare_values(plain_spelling(facts))


def _findings(facts: Facts) -> Iterator[StaticFinding]:
    for node in facts.nodes:
        yield from obfuscation(facts, node)
    plain = plain_spelling(facts)
    flow = Flow(plain)
    for node in plain.nodes:
        for of_facts in (forbidden, patching, fallback, escaping, precision):
            yield from of_facts(plain, node)
        for of_flow in (branches, special_shapes):
            yield from of_flow(flow, node)


def _of(text: str, answer: Callable[[Facts], Iterable[_Answer]], *too_deep: _Answer) -> list[_Answer]:
    """Return an answer about the code that runs as part of a file's kernels, none where it does not parse, and
    ``too_deep`` where it cannot be read whole."""
    try:
        return list(answer(_facts(text)))
    except _UNREADABLE:
        return []
    except _TOO_DEEP:
        return list(too_deep)


@by_text
def _facts(text: str) -> Facts:
    return Facts(find_kernels(text).kernels, ast.Module(_of_kernels(syntax_of(text)), []))


def _of_kernels(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that run when the kernels are used: all but a problem's functions, tests and the
    main block, unless something else of the file uses those."""
    aside = {
        node.name: node
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and node.name.startswith(WORDS["not_kernel"])
        and node.name != "ModelNew"
    }
    statements = [n for n in tree.body if n not in aside.values() and not _runs_as_main(n)]
    waiting = list(statements)
    while waiting:
        for inner in ast.walk(waiting.pop()):
            if isinstance(inner, ast.Name) and inner.id in aside:
                node = aside.pop(inner.id)
                statements.append(node)
                waiting.append(node)
    return statements


def _runs_as_main(node: ast.stmt) -> bool:
    """``if __name__ == "__main__":`` and nothing else."""
    match node:
        case ast.If(ast.Compare(_, [ast.Eq()]), _, []):
            return is_main_guard(node)
    return False
