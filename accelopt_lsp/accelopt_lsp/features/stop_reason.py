"""Says in a few words what is wrong with a kernel: it raises, it does not parse, its result is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from accelopt_lsp.state.state_store import FileState
from accelopt_profiling.finding_codes import short_text
from accelopt_profiling.measurement import Finding, KernelMeasurement

#: The words for a result that disagrees with the reference.
WRONG = "wrong result"


def syntax_fault(state: FileState) -> str:
    """Return ``does not parse, line 12`` where the text of a file does not; empty otherwise."""
    return next((short_text(f) for f in state.findings if f.code == "syntax-error"), "")


def stop_reason(result: KernelMeasurement, run_findings: Iterable[Finding] = ()) -> str:
    """Return ``raises AttributeError, line 21``, ``out of bounds, line 12`` or ``wrong result``: the first error
    among the findings of a kernel; where it has no time, also of its file's run, and what else is the reason.
    Empty where there is none."""
    findings = [*result.findings, *(run_findings if result.latency.us is None else ())]
    findings.sort(key=lambda f: f.severity != "error")
    if result.latency.us is not None:
        findings = [f for f in findings if f.severity == "error"]
    texts = [text for f in findings if (text := short_text(f))]
    return texts[0] if texts else WRONG if result.correctness.status == "failed" else ""
