"""The result of looking for a problem, as plain data: found by the client, loaded by a child process."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_profiling.measurement import Finding


@dataclass(frozen=True)
class ProblemRef:
    """A problem that was found for a kernel file.

    ``kind`` is that of its layout (see ``catalogue.layout_of``). ``path`` is the file that holds it, relative to the
    job's folder (see ``jobs.JobFiles``); None means the kernel file itself. ``entry`` names the function of the kernel
    file that takes the inputs; None lets the problem decide. ``origin`` says in words how it was found, for messages.
    ``content_hash`` covers the problem's own text.
    """

    kind: str
    path: str | None = None
    entry: str | None = None
    origin: str = ""
    content_hash: str = ""
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProblemLookup:
    """A problem, or the reason why there is none, and the files that a job needs for it.

    ``files`` maps paths relative to ``root`` to the texts the problem needs besides the kernel file; ``imports``
    lists what those written in Python import
    (see ``ParsedPython.imports``). ``findings`` say what is wrong; those about another file name it in
    their message and point at the line of the kernel file that asked for it, or at its first kernel.
    """

    ref: ProblemRef | None
    files: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    root: Path | None = None
    imports: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
