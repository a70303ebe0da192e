"""Say whose fault it is that a step ended without an answer: the candidate's, the problem's, or the gate's."""

from __future__ import annotations

from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.jobs import StepError
from accelopt_profiling.measurement import HOST_FAULTS

#: Codes of a step's error and the reason they become when it was the candidate's step.
_CANDIDATE_CODES = {
    "user-error": "kernel-raised",
    "crashed": "kernel-crashed",
    "killed": "kernel-crashed",
    "exited": "kernel-exited",
    "memory": "out-of-memory",
    "problem-invalid": "no-entry",
    "problem-empty": "no-output",
}


def is_problem_fault(step: str, error: StepError) -> bool:
    """Return True for the failure of a step that runs the problem's code alone, and none of the candidate's."""
    own = step in ("gate.draw", "gate.plan", "gate.reference", "gate.original")
    return own and error.code != "tampered" and error.code not in HOST_FAULTS


def failed_step(step: str, error: StepError, case: str) -> Reason:
    """Return the reason for a step that ended without an answer: the candidate's fault, the problem's, or the
    gate's."""
    place = f" ({error.file}:{error.line})" if error.file and error.line else ""
    if error.code in HOST_FAULTS:
        return Reason("gate-failed", f"The gate could not finish ({step}): {error.message}")
    if step == "gate.run" and error.code == "not-judged":
        return Reason(error.code, f"On the case {case!r} {error.message}" if case else error.message)
    if step == "gate.run":
        code = _CANDIDATE_CODES.get(error.code, error.code)
        when = f" on the case {case!r}" if case else ""
        return Reason(code, f"The candidate failed{when}: {error.message}{place}")
    if error.code == "tampered":
        return Reason("tampered", error.message)
    if is_problem_fault(step, error):
        code = error.code if error.code.startswith(("problem-", "missing-")) else f"problem-{error.code}"
        return Reason(code, f"The problem cannot be used: {error.message}{place}")
    return Reason("gate-failed", f"The gate could not finish ({step}): {error.message}")
