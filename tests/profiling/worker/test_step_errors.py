"""What ends a step outside of user code is a sentence with a code that has a page, and no verdict on a file."""

from __future__ import annotations

import errno

import pytest

from accelopt_profiling.gate.step_failures import failed_step, is_problem_fault
from accelopt_profiling.jobs import StepError
from accelopt_profiling.measurement import HOST_FAULTS, finding_codes
from accelopt_profiling.step_context import step_error

ERRORS = {
    "disk-full": [OSError(errno.ENOSPC, "No space left on device", "/tmp/f"), OSError(errno.EDQUOT, "Quota", "f")],
    "no-access": [PermissionError(errno.EACCES, "Permission denied", "/.git"), OSError(errno.EROFS, "Read-only", "f")],
    "host-failed": [OSError(errno.EMFILE, "Too many open files"), OSError("without a number"), BlockingIOError()],
    "unsupported": [RecursionError("too deep"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no")],
    "memory": [MemoryError()],
    "tool-failed": [TypeError("ours"), KeyError("k"), SystemExit(3), KeyboardInterrupt()],
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "error"), [(code, error) for code, errors in ERRORS.items() for error in errors], ids=repr
)
def test_an_error_of_a_step_is_a_sentence(code: str, error: BaseException) -> None:
    sentence = step_error("profile", error, "trace")
    assert sentence.code == code
    assert sentence.code in finding_codes() or sentence.code == "memory"  # the finding "out-of-memory"
    assert sentence.message[0].isupper()
    assert sentence.message.endswith((".", ")"))
    assert "internal" not in sentence.message
    assert str(getattr(error, "filename", None) or "") in sentence.message


@pytest.mark.parametrize("code", sorted(HOST_FAULTS))
@pytest.mark.parametrize("step", ["gate.draw", "gate.run", "gate.original", "gate.reference", "gate.judge"])
def test_a_fault_of_the_host_is_blamed_on_no_candidate_and_no_problem(step: str, code: str) -> None:
    error = StepError(code, "It failed.")
    assert not is_problem_fault(step, error)
    assert failed_step(step, error, "first").code == "gate-failed"
