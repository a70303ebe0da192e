"""What of a file a model is shown."""

from __future__ import annotations

from accelopt_agent.lines import split_lines
from accelopt_agent.model.settings import Share
from accelopt_profiling.kernels import Kernel


def shown(text: str, kernel: Kernel, share: Share) -> str:
    """``text``, or the lines of ``kernel`` in it alone. Edits of these lines fit the whole text as well."""
    if share == "file":
        return text
    return "\n".join(split_lines(text).texts[kernel.first_line - 1 : kernel.end_line]) + "\n"
