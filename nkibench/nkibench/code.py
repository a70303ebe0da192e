"""Hashes of the code that makes a result: when it changes, the result is found out anew."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import accelopt_agent
import accelopt_profiling


@cache
def toolchain_hash() -> str:
    """Of what makes a cost and a verdict: emulator and time model, gate, hardware figures, problems."""
    root = Path(accelopt_profiling.__file__).parent
    return _hash(*(root / folder for folder in ("nki", "gate", "targets", "problems", "trainium")))


@cache
def agent_hash() -> str:
    """Of what makes a search: rules, strategy, prompts."""
    return _hash(Path(accelopt_agent.__file__).parent)


def _hash(*folders: Path) -> str:
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".json", ".md"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
