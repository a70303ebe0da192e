"""Verdicts that hold until something changes that they depend on: the case, the gate with what it runs on, versions."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path

import accelopt_benchmarks
import accelopt_lsp
import accelopt_profiling
from accelopt_benchmarks.gate.corpus import CorpusCase

#: What a verdict follows from: the room of the gate, nine tenths of which the gate imports, and what asks it here.
SOURCES = (
    Path(accelopt_profiling.__path__[0]),
    Path(accelopt_benchmarks.__path__[0]) / "gate",
    Path(accelopt_benchmarks.__path__[0]) / "edit_cases.py",
    Path(accelopt_lsp.__path__[0]) / "gate_check.py",
)
PACKAGES = {"numpy", "ml_dtypes", "torch", "triton"}


def state_of_the_gate() -> str:
    """Return a hash of what all verdicts depend on."""
    versions = sorted((d.name, d.version) for d in distributions() if d.name in PACKAGES)
    state = hashlib.sha256(repr((platform.platform(), platform.python_version(), versions)).encode())
    for source in SOURCES:
        files = [source] if source.is_file() else [*source.rglob("*.py"), *source.rglob("*.json")]
        for path in sorted(files):
            state.update(str(path.relative_to(source.parent)).encode() + path.read_bytes())
    return state.hexdigest()


def verdict_key(state: str, case: CorpusCase, version: str) -> str:
    """Return the name under which the verdict on the "attack" or "honest" of a case is stored."""
    depends = (
        state,
        case.name,
        case.problem.read_text(),
        version,
        case.texts,
        case.original,
        case.refused_for,
    )
    return hashlib.sha256(repr(depends).encode()).hexdigest()


def judged_each_time(cases: Iterable[CorpusCase]) -> set[str]:
    """Return the names of few cases that have each reason and each trick of each dialect among them."""
    kinds = {
        case.name: {(case.dialect, kind) for kind in (*case.refused_for, *case.tricks)}
        for case in cases
        if case.refused_for
    }
    uncovered, names = set().union(*kinds.values()), set()
    while uncovered:
        name = max(kinds, key=lambda name: len(kinds[name] & uncovered))
        names.add(name)
        uncovered -= kinds[name]
    return names
