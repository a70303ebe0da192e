"""Hashes the code that a result depends on: when it changes, the result is computed again."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import accelopt_agent
import accelopt_profiling

#: The folders of ``accelopt_profiling`` that a cost and a verdict come from.
_COSTS = ("nki", "targets", "problems", "trainium")
_VERDICTS = ("nki", "gate", "problems")


@cache
def cost_hash() -> str:
    """Return the hash of what makes a cost: emulator and time model, hardware figures, devices, problems."""
    return _profiling_hash(*_COSTS)


@cache
def verdict_hash() -> str:
    """Return the hash of what makes a verdict: gate, emulator, problems."""
    return _profiling_hash(*_VERDICTS)


@cache
def toolchain_hash() -> str:
    """Return the hash of what makes either, on which the course of a search depends."""
    return _profiling_hash(*sorted({*_COSTS, *_VERDICTS}))


@cache
def agent_hash() -> str:
    """Return the hash of what makes a search: rules, strategy, prompts."""
    return _hash(Path(accelopt_agent.__file__).parent)


def _profiling_hash(*names: str) -> str:
    root = Path(accelopt_profiling.__file__).parent
    return _hash(*(root / name for name in names))


def _hash(*folders: Path) -> str:
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".json", ".md"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
