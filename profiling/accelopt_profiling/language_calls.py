"""Calls of functions of NKI and Triton that not every version has, found by syntax."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from accelopt_profiling.measurement import Finding
from accelopt_profiling.name_paths import all_import_paths, dotted_path
from accelopt_profiling.nki.current.versions import change
from accelopt_profiling.nki.operations.table import DIALECTS, NkiDialect, full_name, operations, table
from accelopt_profiling.triton.functions.table import Version, functions, missing
from accelopt_profiling.triton.functions.table import table as triton_table
from accelopt_profiling.triton_adapter.versions import NEWEST, OLDEST

TRITON = "triton.language"
_PACKAGES = ("nki", "neuronxcc", "triton")
#: How like a name a known one is to be the one that was meant.
_TYPING_SLIP = 0.75


@dataclass(frozen=True)
class LanguageCall:
    """A call by its dotted ``path`` ("nki.language.exp"), 1-based ``line``."""

    path: str
    line: int


def version_calls(tree: ast.Module) -> tuple[LanguageCall, ...]:
    """Return the calls of functions that some version of their package lacks, each place once.

    A name counts that is imported and bound in no other way. What stands below an ``if`` or in a ``try`` may be meant
    for other versions and is left out.
    """
    paths = {name: path for name, path in all_import_paths(tree).items() if path.startswith(_PACKAGES)}
    if not paths:
        return ()
    calls = {
        LanguageCall(path, call.lineno): _first_name(call.func)
        for call in _unconditional(tree)
        if (path := dotted_path(call.func, paths.get)) and _differs(path)
    }
    if not calls:
        return ()
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    return tuple(call for call, name in calls.items() if name not in bound)


def _first_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _unconditional(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls in no ``try`` and below no test of a version."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        if isinstance(node, (ast.If, ast.IfExp)) and _asks_for_version(node.test):
            continue
        if not isinstance(node, ast.Try):
            waiting += ast.iter_child_nodes(node)


def _asks_for_version(test: ast.expr) -> bool:
    words = {
        n.id if isinstance(n, ast.Name) else n.attr
        for n in ast.walk(test)
        if isinstance(n, (ast.Name, ast.Attribute))
    }
    return any(word == "hasattr" or "version" in word.lower() or word.isupper() for word in words)


@lru_cache(maxsize=1024)
def _differs(path: str) -> bool:
    """Whether some version lacks what a path means."""
    if path.startswith(f"{TRITON}."):
        function = functions().get(path[len(TRITON) + 1 :])
        if function is None:
            return "." not in path[len(TRITON) + 1 :] and not _other_triton_name(path)
        return any(function.parameters(version) is None for version in (OLDEST, NEWEST))
    return bool(_nki_fault(path, "0.0") or _nki_fault(path, "999.0"))


def _other_triton_name(path: str) -> bool:
    return path[len(TRITON) + 1 :] in (
        *triton_table()["dtypes"].split(),
        *triton_table()["other_names"].split(),
    )


def call_findings(calls: Sequence[LanguageCall], nki: str, triton: Version | None) -> list[Finding]:
    """Return a finding ``unknown-function`` for each call that the versions do not have; ``triton`` None: not known."""
    findings = []
    for call in calls:
        if not call.path.startswith(f"{TRITON}."):
            fault = _nki_fault(call.path, nki)
        else:
            fault = _triton_fault(call.path[len(TRITON) + 1 :], triton) if triton is not None else ""
        if fault:
            findings.append(Finding("unknown-function", call.line, "error", f"{fault}."))
    return findings


def _triton_fault(name: str, installed: Version) -> str:
    if name in functions():
        return missing(name, installed)
    present = [f.name for f in functions().values() if f.parameters(installed) is not None]
    return missing(name, installed) if difflib.get_close_matches(name, present, 1, _TYPING_SLIP) else ""


def _nki_fault(path: str, version: str) -> str:
    """Return why a version of a dialect has no function at ``path``; "" where it has, or where that is not certain."""
    place = _nki_place(path)
    if place is None:
        return ""
    dialect, module, short = place
    name = f"{module}.{short}"
    operation = operations().get(name)
    if dialect == "current":
        reason = change("names", full_name(name), version)
        if reason is not None and reason.kind == "added":
            return f"{name} came with NKI {reason.version}, and this is NKI {version}"
        if reason is not None and reason.kind == "removed" and not reason.unless:
            return f"{name} is gone since NKI {reason.version}; use {reason.instead}"
    if operation is not None or name in table()["names"] or short in _value_names():
        return ""
    known = [
        o.short
        for o in operations().values()
        if o.name.startswith(f"{module}.") and (dialect in o.signatures or dialect in o.tokens)
    ]
    near = difflib.get_close_matches(short, known, 1, _TYPING_SLIP)
    return f"{table()['packages'][dialect][module]} has no {short}; it has {near[0]}" if near else ""


def _nki_place(path: str) -> tuple[NkiDialect, str, str] | None:
    parent, _, short = path.rpartition(".")
    for dialect in DIALECTS:
        for module, package in table()["packages"][dialect].items():
            if parent == package:
                return dialect, module, short
    return None


def _value_names() -> set[str]:
    values = table()["values"]
    return {*values["dtypes"].split(), *values["buffers"].split(), *values["choices"]}
