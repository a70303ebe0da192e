"""Profile with a problem that this very process inferred."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import PurePosixPath

from accelopt_profiling.jobs import ProfileParams, StepError
from accelopt_profiling.measurement import Finding
from accelopt_profiling.problems.inference.inferred import InferredProblem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext, StepFailedError

#: Seconds for the tries of a problem that is inferred, besides importing the file.
INFER_CPU_SECONDS = 30.0
#: Seconds for inferred calls of the kernels that the first one does not launch.
APART_CPU_SECONDS = 15.0
_GIVE_REAL_VALUES = (
    "Give real values in the problem file and remove `inferred` there, or record a test: `accelopt record`."
)
#: Codes of what may be the fault of the values, not of the kernel.
_BY_VALUES = ("out-of-bounds", "kernel-raised", "uninitialised-read", "capacity")


def instead_of_own_run(context: StepContext, problem: ProblemRef) -> ProblemRef:
    """Return the problem that is to be inferred for a file whose own run launches nothing."""
    kernel = PurePosixPath(context.source.kernel)
    path = str(kernel.with_name(f"{kernel.stem}_problem.py"))
    options = {"unreferenced": True, "inferred": True}
    return replace(problem, kind="inferred", path=path, origin="inferred", options=options)


def with_inferred(
    context: StepContext, params: ProfileParams, inferred: InferredProblem
) -> tuple[StepContext, ProfileParams]:
    """Return the job with the inferred problem as if it had been written down beside the kernel file.

    Raises:
        StepFailedError: nothing was launched with it.
    """
    assert params.problem is not None
    if not inferred.launched and inferred.fault_line:
        file = context.source.kernel
        raise StepFailedError(StepError("user-error", inferred.remaining, file, inferred.fault_line))
    if not inferred.launched:
        raise StepFailedError(StepError("no-problem", inferred.remaining))
    context.emit({"inferred": inferred})
    path = str(params.problem.path)
    context.write_generated(path, inferred.text)
    source = replace(context.source, files={**context.source.files, path: inferred.text})
    return replace(context, source=source), replace(params, problem=replace(params.problem, kind="module"))


def is_by_values(code: str) -> bool:
    """Tell whether what a finding with ``code`` says of a kernel may be the fault of its arguments."""
    return code in _BY_VALUES


def floor_finding(line: int) -> Finding:
    """Return the finding of inferred sizes so small that the launch itself takes most of the time."""
    message = (
        "At the inferred sizes the launch itself takes most of the time: give larger "
        "ones in the problem file."
    )
    return Finding("inferred-size", line, "information", message)


def of_inferred(finding: Finding, *codes: str, own: Collection[int] = ()) -> Finding:
    """Return the finding of a kernel that ran with inferred arguments: what goes wrong may be their fault, and
    what has one of ``codes`` is taken for that as well; but not what is the file's own fault, on the lines ``own``."""
    if finding.line in own and finding.code in _BY_VALUES:
        return finding
    if finding.severity != "error" or finding.code not in (*_BY_VALUES, *codes):
        return finding
    message = f"With the inferred arguments: {finding.message.removesuffix('.')}. {_GIVE_REAL_VALUES}"
    return replace(finding, severity="information", message=message)
