"""Writes what a line costs in the few characters that an editor shows at its end."""

from __future__ import annotations

from accelopt_profiling.duration import duration_text

#: Characters of a hint; VS Code cuts at 43, and a hint shares the line with the code.
WIDTH = 30


def line_hint(cause: str, us: float, share: float) -> str:
    """Return ``strided, est. 1.24 ms, 50 %``: the cause, an estimated time in microseconds and its share (0..1) of the
    kernel's. What does not fit is left out from the end, the cause last."""
    parts = [cause, f"est. {duration_text(us)}", f"{share:.0%}".replace("%", " %")]
    while len(parts) > 1 and len(", ".join(parts)) > WIDTH:
        parts.pop()
    return ", ".join(parts)[:WIDTH]
