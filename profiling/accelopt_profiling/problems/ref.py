"""Where a problem comes from, as plain data: found on the editor's side, loaded in the worker's child
process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

ProblemKind = Literal["module", "nkibench", "kernelbench", "flashinfer", "selfrun"]


@dataclass(frozen=True)
class ProblemRef:
    """A problem that was found for a kernel file.

    ``path`` is the file that holds it, relative to the job's folder (see ``jobs.Source``); None means the
    kernel file itself. ``entry`` names the function of the kernel file that takes the inputs; None lets the
    problem decide. ``origin`` says in words how it was found, for messages. ``content_hash`` covers the
    problem's own text.
    """

    kind: ProblemKind
    path: str | None = None
    entry: str | None = None
    origin: str = ""
    content_hash: str = ""
    options: dict[str, Any] = field(default_factory=dict)
