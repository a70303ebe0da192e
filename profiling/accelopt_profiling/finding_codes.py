"""Looks up what a finding's code means (``findings.json``)."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from accelopt_profiling.measurement import Finding

_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration)\b")


#: Findings about a limit, and the setting that raises it.
LIMITS = {"timeout": "limits.seconds", "out-of-memory": "limits.memory_mb"}


@cache
def finding_codes() -> dict[str, dict[str, str]]:
    """Load the codes: a title each, what they are about, and for those that end a run what it came to, in short."""
    loaded: dict[str, dict[str, str]] = json.loads(
        Path(__file__).with_name("findings.json").read_text("utf-8")
    )
    return loaded


def short_text(finding: Finding) -> str:
    """Return a few words for a title, ``raises AttributeError, line 21``; empty for codes that have none."""
    words = finding_codes().get(finding.code, {}).get("short", "")
    raised = _EXCEPTION.search(finding.message)
    return words.format(error=raised[0] if raised else "an error", line=f", line {finding.line}")
