"""Builds the JSON objects that scripts rely on; their names do not follow renames of the data classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from accelopt_profiling.plain import to_plain

if TYPE_CHECKING:
    from accelopt_agent.events import Finished
    from accelopt_agent.suggestions.suggestion import Suggestion, VersionStep
    from accelopt_profiling.gate.verdict import Verdict
    from accelopt_profiling.measurement import FileMeasurement, Finding, KernelMeasurement, Latency
    from accelopt_profiling.recording.command import RecordOutcome


def file_object(measurement: FileMeasurement) -> dict[str, Any]:
    """Return what ``profile --json`` prints. ``findings`` beside ``kernels`` are those that belong to no
    kernel."""
    return {
        "file": measurement.file,
        "kernels": [kernel_object(kernel) for kernel in measurement.kernels],
        "findings": [finding_object(finding) for finding in measurement.findings],
    }


def _correctness(kernel: KernelMeasurement) -> dict[str, Any]:
    """Return the status and its detail; also that of the device's own outputs, where one computed them."""
    checked = kernel.correctness
    own = {} if checked.device == "not checked" else {"device": checked.device}
    return {
        "status": checked.status,
        "compared": checked.compared,
        "of": checked.of,
        "detail": checked.detail,
        **own,
    }


def _ran(kernel: KernelMeasurement) -> dict[str, Any]:
    """Return what of the kernel's text ran: launches, each loop with its iterations, the share of its statements."""
    ran = kernel.ran
    loops = [{"line": loop.line, "trips": [loop.least, loop.most]} for loop in ran.loops]
    statements = {"executed": ran.executed, "of": ran.statements, "share": ran.share}
    return {"launches": ran.launches, "loops": loops, "statements": statements}


def kernel_object(kernel: KernelMeasurement) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "line": kernel.line,
        "dialect": kernel.dialect,
        "target": kernel.target,
        "host": kernel.host,
        "correctness": _correctness(kernel),
        "launchable": to_plain(kernel.launchable),
        "latency": latency_object(kernel.latency),
        "percent_of_peak": kernel.percent_of_peak,
        "bound": kernel.bound,
        "case": kernel.case,
        "configuration": kernel.configuration,
        "ran": _ran(kernel),
        "quantities": to_plain(kernel.quantities),
        "lines": to_plain(kernel.lines),
        "findings": [finding_object(finding) for finding in kernel.findings],
        "receipt": kernel.receipt,
    }


def latency_object(latency: Latency) -> dict[str, Any]:
    return {
        "us": latency.us,
        "low_us": latency.low_us,
        "high_us": latency.high_us,
        "known": latency.known.value,
    }


def finding_object(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "line": finding.line,
        "severity": finding.severity,
        "message": finding.message,
    }


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """Return what ``verify --json`` prints, and the ``gate`` of a suggestion."""
    return {
        "accepted": verdict.accepted,
        "reasons": [{"code": reason.code, "message": reason.message} for reason in verdict.reasons],
        "receipt": verdict.receipt,
    }


def suggestion_object(suggestion: Suggestion) -> dict[str, Any]:
    return {
        "id": suggestion.id,
        "kernel": suggestion.kernel,
        "speedup": {
            "value": suggestion.speedup.value,
            "low": suggestion.speedup.low,
            "high": suggestion.speedup.high,
            "known": suggestion.speedup.known.value,
            **({"at": suggestion.speedup.at} if suggestion.speedup.at else {}),
        },
        "latency": latency_object(suggestion.fast),
        "origin": suggestion.origin,
        "summary": suggestion.summary,
        "diff": suggestion.diff,
        "gate": verdict_object(suggestion.gate),
    }


def step_object(step: VersionStep) -> dict[str, Any]:
    """Return one of the ``steps`` of ``explain --json``: ``version`` is the suggestion that ends with it."""
    return {
        "origins": list(step.origins),
        "summary": step.summary,
        "before": latency_object(step.before),
        "after": latency_object(step.after),
        "version": step.id,
    }


def search_object(
    file: str, baseline: Latency, suggestions: Iterable[Suggestion], tried: int, end: Finished, command: str
) -> dict[str, Any]:
    """Return what ``optimize --json`` prints. ``usage`` ends with the ledger: the sums of the model's calls per role
    and model. A search that ended before it was done says why, which faster versions have no verdict, and the
    ``command`` that continues it."""
    from accelopt_agent.model.ledger import accounts

    search = {
        "file": file,
        "run": end.run,
        "baseline": latency_object(baseline),
        "suggestions": [suggestion_object(suggestion) for suggestion in suggestions],
        "tried": tried,
        "usage": {**to_plain(end.usage), "ledger": to_plain(accounts(end.calls))},
    }
    if end.ending == "done":
        return search
    versions = [
        {
            "kernel": version.candidate.kernel,
            "latency": latency_object(version.latency),
            "origin": version.candidate.origin,
            "summary": version.candidate.summary,
            "text": version.candidate.text,
        }
        for version in end.unchecked
    ]
    return {**search, "stopped": {"reason": end.reason, "unchecked": versions, "continue": command}}


def record_object(command: Sequence[str], outcome: RecordOutcome) -> dict[str, Any]:
    """Return the object of `accelopt record`."""
    return {
        "command": list(command), "exit": outcome.exit_code, "ended": outcome.ended, "device": outcome.device,
        "files": [
            {
                "file": str(f.file), "recording": str(f.recording), "kernels": f.kernels, "calls": f.calls,
                "further_shapes": f.further,
            }
            for f in outcome.files
        ],
        "launches": outcome.launches, "interpreted": outcome.executed, "not_interpreted": outcome.skipped,
        "passed_over": outcome.passed_over, "elsewhere": outcome.elsewhere, "refused": outcome.refused,
        "problems": outcome.problems,
    }  # fmt: skip
