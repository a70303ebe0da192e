"""Leave out the findings that a person asked not to be told of: by a comment in the file, or by a setting.

``# accelopt: ignore=CODE`` on a line, or alone on the line above it; ``# accelopt: ignore-file=CODE`` anywhere. Several
codes have commas between them. What says that a kernel is wrong, or has no time, is always told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from accelopt_profiling.measurement import NO_TIME_BY, FileMeasurement, Finding
from accelopt_profiling.source_text import source_lines

_COMMENT = re.compile(r"#\s*accelopt:\s*(ignore|ignore-file)\s*=\s*([a-z-]+(?:\s*,\s*[a-z-]+)*)")


@dataclass(frozen=True)
class IgnoredFindings:
    """The codes that a file's comments leave out: everywhere, and by the 1-based line."""

    everywhere: frozenset[str] = frozenset()
    by_line: dict[int, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> IgnoredFindings:
        """Read the comments of a file."""
        everywhere, by_line = set[str](), dict[int, frozenset[str]]()
        for number, line in enumerate(source_lines(text) if "accelopt:" in text else (), 1):
            if "accelopt" not in line or (comment := _COMMENT.search(line)) is None:
                continue
            named = frozenset(re.split(r"\s*,\s*", comment[2]))
            if comment[1] == "ignore-file":
                everywhere |= named
            else:
                alone = not line[: comment.start()].strip()
                at = number + 1 if alone else number
                by_line[at] = by_line.get(at, frozenset()) | named
        return cls(frozenset(everywhere), by_line)

    def moved(self, line: Callable[[int], int]) -> IgnoredFindings:
        """Return the same after an edit that moved lines."""
        return replace(self, by_line={line(number): codes for number, codes in self.by_line.items()})

    def rest(self, findings: Iterable[Finding], codes: Collection[str] = ()) -> list[Finding]:
        """Return the findings that are told; ``codes`` are those that the settings leave out."""
        return [f for f in findings if not can_be_ignored(f) or not (f.code in codes or self._names(f))]

    def rest_of(self, measurement: FileMeasurement, codes: Collection[str] = ()) -> FileMeasurement:
        """Return a measurement with the findings that are told."""
        kernels = [replace(k, findings=self.rest(k.findings, codes)) for k in measurement.kernels]
        return replace(measurement, kernels=kernels, findings=self.rest(measurement.findings, codes))

    def _names(self, finding: Finding) -> bool:
        return finding.code in self.everywhere or finding.code in self.by_line.get(finding.line, ())


def can_be_ignored(finding: Finding) -> bool:
    """Return whether a person may silence a finding: no error, and nothing for which there is no time."""
    return finding.severity != "error" and finding.code not in NO_TIME_BY
