"""The schedule of a device's engines as a model estimates it, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Spans:
    """Pieces of work in columns, by start.

    ``lane`` and ``name`` are indices into the timeline's lists.

    ``line`` is the 1-based source line. ``cause`` is the index of the span that this one waited for, or -1; ``why`` is
    "operand" (it reads what that one wrote), "room" (it writes where that one still reads), "queue" (the lane was
    busy with it) or "".
    """

    lane: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    start_us: list[float] = field(default_factory=list)
    us: list[float] = field(default_factory=list)
    cause: list[int] = field(default_factory=list)
    why: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Timeline:
    """One run of a kernel.

    ``busy`` has a list per lane: its share (0..1) of each of equally long parts of ``us``. ``spans`` cover the run up
    to ``shown_us``, which is all of it unless there are very many. Lanes of another core of the launch end in its
    number.
    """

    us: float
    lanes: list[str]
    names: list[str]
    busy: list[list[float]]
    spans: Spans
    shown_us: float
