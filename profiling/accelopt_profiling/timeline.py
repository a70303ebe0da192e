"""The schedule of a device's engines as a model estimates it, as plain data."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace


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

    def middle(self, most: int = 160) -> Timeline:
        """Return the timeline with ``most`` spans around the middle of what is shown, and those that are under way when
        the first of them begins. A span that is not among them is nobody's cause."""
        spans, count = self.spans, len(self.spans.lane)
        if count <= most:
            return self
        at = bisect_left(spans.start_us, self.shown_us / 2)
        first = max(0, min(at - most // 2, count - most))
        begin = spans.start_us[first]
        under_way = [n for n in range(first) if spans.start_us[n] + spans.us[n] > begin]
        chosen = [*under_way, *range(first, first + most)]
        places = {n: place for place, n in enumerate(chosen)}
        columns = {
            name: [getattr(spans, name)[n] for n in chosen]
            for name in ("lane", "name", "line", "start_us", "us", "why")
        }
        return replace(self, spans=Spans(**columns, cause=[places.get(spans.cause[n], -1) for n in chosen]))

    def with_lines(self, moved: Callable[[int], int]) -> Timeline:
        """Return the timeline with each line where ``moved`` says it is."""
        return replace(
            self, spans=replace(self.spans, line=[line and moved(line) for line in self.spans.line])
        )
