"""Report the errors of a launch as findings on the user's lines."""

from __future__ import annotations

import traceback

from accelopt_profiling.measurement import Finding, Severity
from accelopt_profiling.step_context import StepFailedError
from accelopt_profiling.triton.capture.session import CaptureSession, LaunchExecution, describe
from accelopt_profiling.triton.check_size import CheckSize
from accelopt_profiling.triton.compilation.compiled import CompiledFacts, CompileProblem
from accelopt_profiling.triton.functions.table import missing
from accelopt_profiling.triton.interpreter.arithmetic import UnsupportedOperationError
from accelopt_profiling.triton_adapter.runtime import VERSION


def execution_findings(execution: LaunchExecution) -> list[Finding]:
    """Return the findings ``out-of-bounds``, ``unsupported`` and ``kernel-raised`` of one launch."""
    findings = [
        Finding("out-of-bounds", fault.line or execution.launch.line, "error", describe(fault))
        for fault in execution.faults
    ]
    error = execution.error
    if error is not None:
        line = line_of(error, execution.launch.file) or execution.launch.line
        if isinstance(error, UnsupportedOperationError):
            findings.append(
                Finding("unsupported", line, "information", f"{str(error)[:1].upper()}{str(error)[1:]}.")
            )
        else:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            if reason := _missing_function(error):
                what = f"{type(error).__name__}: {reason}"
            findings.append(Finding("kernel-raised", line, "error", f"The kernel raised {what}"))
    return findings


def _missing_function(error: BaseException) -> str:
    """Return why Triton has no function of the name that a kernel calls; "" where that is not the error."""
    if not isinstance(error, AttributeError) or getattr(error.obj, "__name__", "") not in _LANGUAGE:
        return ""
    return missing(str(error.name), VERSION)


_LANGUAGE = ("triton.language", "triton.language.core", "triton.language.math")


def own_run_finding(failed: StepFailedError, session: CaptureSession, line: int) -> Finding | None:
    """Return the finding for a file that runs itself and broke off after its launches.

    A failed check is an error, any other end a warning: the launches before it keep their cost. Either is a warning
    where only a sample of some launch's programs ran, unless a comparison of torch's failed by what those wrote: what
    the others would have written is NaN.
    """
    error = failed.error
    if error.code != "user-error":
        return None
    check = isinstance(failed.__cause__, AssertionError)
    what = "The file's own check failed" if check else "The file's own run broke off after these launches"
    message = f"{what}: {error.message.removesuffix('.')}."
    unsure = session.coverage.sampled and not session.own_failure
    if unsure:
        message += " Not all programs were run, which may be why."
    severity: Severity = "error" if check and not unsure else "warning"
    return Finding("kernel-raised", error.line or line, severity, message)


def own_checks(session: CaptureSession) -> str:
    """Return how much of what a file compares itself could be compared; "" where it compares nothing in part."""
    if not session.own_checks:
        return ""
    compared, of = (sum(column) for column in zip(*session.own_checks, strict=True))
    where = ", those that a sample of the programs wrote" if compared else ""
    return f"The file's own checks compared {compared:,} of {of:,} elements{where}"


def smaller_check_finding(size: CheckSize, smaller: str, line: int, referenced: bool) -> Finding:
    """Return the finding for results that were checked at smaller sizes than the cost is stated for; without a
    reference only accesses out of bounds are looked for."""
    checked = "the result was checked" if referenced else "bounds were checked"
    message = f"At the full size {size.excess}; {checked} at {smaller}."
    return Finding("checked-smaller", line, "information", message)


def problem_finding(problem: CompileProblem, line: int) -> Finding:
    """Return ``capacity`` or ``does-not-compile`` where the target cannot launch a kernel.

    ``unsupported``, which is no error, where that could not be found out.
    """
    where = problem.line or line
    if problem.kind == "out-of-resources":
        return Finding("capacity", where, "error", f"The kernel {problem.message.removesuffix('.')}.")
    if problem.kind == "compile-error":
        return Finding("does-not-compile", where, "error", f"It does not compile: {problem.message}")
    message = f"{problem.message.removesuffix('.')}: whether it compiles and launches was not checked."
    return Finding("unsupported", where, "information", message)


def spill_findings(facts: CompiledFacts, line: int) -> list[Finding]:
    """Return ``spills``, at the line with most of them."""
    if not facts.spill_bytes:
        return []
    counts = {n: x.get("spill_load", 0) + x.get("spill_store", 0) for n, x in facts.lines.items()}
    most = max(counts, key=lambda n: counts[n], default=line)
    where = most if counts.get(most) else line
    message = f"{facts.spill_bytes} bytes per thread spill to memory; use smaller blocks or more warps."
    return [Finding("spills", where, "warning", message)]


def line_of(error: BaseException, file: str) -> int | None:
    """Return the innermost line of ``file`` in the traceback of ``error``, 1-based."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[-1] if lines else None
