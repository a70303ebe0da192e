"""Compute the key of results: a hash of every text that they come from, and of their conditions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from accelopt_profiling.job_files import job_files
from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.plain import to_plain


def content_key(kind: str, file: KernelSource, conditions: Any) -> str:
    """Return ``kind`` and a hash of the file, its problem, the project's modules that they import, and the
    ``conditions``, plain data."""
    ref = to_plain(file.problem.ref)
    parts = json.dumps([str(file.path.resolve()), _texts(file), ref, to_plain(conditions)], sort_keys=True)
    return f"{kind}:{hashlib.sha256(parts.encode(errors='surrogatepass')).hexdigest()}"


def depends_on_any(file: KernelSource, paths: Iterable[str]) -> bool:
    """Return whether any of the files at ``paths`` is among what the results for a file come from."""
    used = {(file.root / name).resolve() for name in _texts(file)}
    return any(Path(path).resolve() in used for path in paths)


def _texts(file: KernelSource) -> dict[str, str]:
    """Return the texts of a job for the file by their names.

    The problem's also where they are outside of its root.
    """
    return {**file.problem.files, **job_files(file, ship_imports=True).files}
