"""Build gate requests for a candidate file and its problem, for ``verify`` and ``bench gate``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accelopt_lsp.errors import UserError

if TYPE_CHECKING:
    from accelopt_profiling.gate.request import GateRequest
    from accelopt_profiling.gate.verdict import Verdict
    from accelopt_profiling.jobs import Limits
    from accelopt_profiling.kernels import KernelSource
    from accelopt_profiling.measurement import Dialect


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
    """Return the refusal of a candidate that has nothing to check; None when it has a kernel."""
    from accelopt_profiling.gate.verdict import Reason, Verdict
    from accelopt_profiling.kernels import find_kernels

    source = find_kernels(text)
    if source.launched:
        return None
    if (fault := source.syntax_error) is not None:
        return Verdict(False, [Reason("does-not-parse", f"{fault.message} (line {fault.line})")])
    message = "The candidate has no Triton or NKI kernel that host code launches."
    return Verdict(False, [Reason("no-kernel", message)])


def gate_requests(check: GateCheck, *, ship_imports: bool) -> list[GateRequest]:
    """Return one request for each dialect of the file's kernels.

    Raises:
        UserError: there is no kernel, or the problem cannot be used.
    """
    from accelopt_profiling.gate.request import GateRequest
    from accelopt_profiling.job_files import job_files
    from accelopt_profiling.problems.catalogue import is_unreferenced

    original = _original(check)
    assert original.problem.ref is not None
    if is_unreferenced(original.problem.ref) and check.candidate == check.original:
        raise UserError(
            f"{check.problem} has no reference; name the kernel file to compare with (--original FILE), or add "
            "`reference` to the problem."
        )
    before = job_files(original, ship_imports=ship_imports)
    after = job_files(original, ship_imports=ship_imports, text=check.candidate)
    return [
        GateRequest(
            candidate=after,
            original=before,
            problem=original.problem.ref,
            kernel=_changed(original, dialect, check.candidate),
            dialect=dialect,
            target=check.targets[dialect],
            limits=check.limits,
        )
        for dialect in dict.fromkeys(kernel.dialect for kernel in original.launched)
    ]


def _original(check: GateCheck) -> KernelSource:
    """Find the original's kernels and the problem that was asked for, wherever it lies and whatever a comment in the
    file names.
    """
    from accelopt_profiling.examination import examine

    root = check.root
    inside = root is not None and check.problem.resolve().is_relative_to(root.resolve())
    file = examine(
        check.file,
        check.original.replace("accelopt:", "accelopt "),
        project_root=root if inside else None,
        problem=str(check.problem),
    )
    errors = [f"{check.file}:{f.line}: {f.message}" for f in file.findings if f.severity == "error"]
    if errors or file.problem.ref is None or not file.launched:
        raise UserError(
            "\n".join(errors) or f"{check.file} has no kernel, or the problem gives it no inputs."
        )
    return dataclasses.replace(file, text=check.original)


def _changed(original: KernelSource, dialect: Dialect, text: str) -> str:
    """Return the one kernel that differs in the candidate; "" where several do, or none."""
    from accelopt_profiling.kernels import find_kernels

    now = {kernel.name: kernel.content_hash for kernel in find_kernels(text).kernels}
    changed = [
        k.name for k in original.launched if k.dialect == dialect and now.get(k.name) != k.content_hash
    ]
    return changed[0] if len(changed) == 1 else ""
