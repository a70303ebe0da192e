"""Build gate requests for a candidate file and its problem, for ``verify`` and ``bench gate``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accelopt_lsp.errors import UserError

if TYPE_CHECKING:
    from accelopt_profiling.gate.gate import GateRequest
    from accelopt_profiling.gate.verdict import Verdict
    from accelopt_profiling.jobs import Limits
    from accelopt_profiling.measurement import Dialect
    from accelopt_profiling.profiler import ProfileRequest, Subject


@dataclass(frozen=True)
class GateCheck:
    """A candidate to check: its text, that of the original (the candidate itself where there is none) and the file
    they stand for. ``problem`` is absolute.
    """

    file: Path
    candidate: str
    original: str
    problem: Path
    root: Path | None
    targets: Mapping[Dialect, str]
    limits: Limits


def without_kernel(text: str) -> Verdict | None:
    """The refusal of a candidate that has nothing to check; None when it has a kernel."""
    from accelopt_profiling.gate.verdict import Reason, Verdict
    from accelopt_profiling.kernels import find_kernels

    discovery = find_kernels(text)
    if any(not kernel.device_function for kernel in discovery.kernels):
        return None
    broken = [f for f in discovery.findings if f.code == "syntax-error"]
    if broken:
        return Verdict(False, [Reason("does-not-parse", f"{broken[0].message} (line {broken[0].line})")])
    said = "The candidate has no Triton or NKI kernel that host code launches."
    return Verdict(False, [Reason("no-kernel", said)])


def gate_requests(check: GateCheck, *, ship_imports: bool) -> list[GateRequest]:
    """One request for each dialect of the file's kernels.

    Raises:
        UserError: there is no kernel, or the problem cannot be used.
    """
    from accelopt_profiling.gate.gate import GateRequest
    from accelopt_profiling.problems.found import source_for
    from accelopt_profiling.profiler import ProfileRequest

    asking = ProfileRequest(
        check.file, check.original, check.targets, check.root, str(check.problem), limits=check.limits
    )
    subject = _subject(asking)
    assert subject.found.ref is not None
    before = source_for(check.file, check.original, subject.found, ship_imports=ship_imports)
    after = source_for(check.file, check.candidate, subject.found, ship_imports=ship_imports)
    return [
        GateRequest(
            candidate=after,
            original=before,
            problem=subject.found.ref,
            kernel=_changed(subject, dialect, check.candidate),
            dialect=dialect,
            target=check.targets[dialect],
            limits=check.limits,
        )
        for dialect in dict.fromkeys(kernel.dialect for kernel in subject.kernels)
    ]


def _subject(request: ProfileRequest) -> Subject:
    """The kernels and the problem that was asked for, wherever it lies and whatever a comment in the file names."""
    from accelopt_profiling.profiler import examine

    root = request.project_root
    inside = root is not None and Path(str(request.problem)).resolve().is_relative_to(root.resolve())
    text = request.text.replace("accelopt:", "accelopt ")
    subject = examine(dataclasses.replace(request, text=text, project_root=root if inside else None))
    errors = [f"{request.path}:{f.line}: {f.message}" for f in subject.findings if f.severity == "error"]
    if errors or subject.found.ref is None or not subject.kernels:
        raise UserError(
            "\n".join(errors) or f"{request.path} has no kernel, or the problem gives it no inputs."
        )
    return subject


def _changed(subject: Subject, dialect: Dialect, text: str) -> str:
    """The one kernel that differs in the candidate; "" where several do, or none."""
    from accelopt_profiling.kernels import find_kernels

    now = {kernel.name: kernel.content_hash for kernel in find_kernels(text).kernels}
    changed = [k.name for k in subject.kernels if k.dialect == dialect and now.get(k.name) != k.content_hash]
    return changed[0] if len(changed) == 1 else ""
