"""What every call of a model cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    """One call: tokens as the server counted them, seconds with all retries, money at the configured price (None
    without one), and the fault that ended it, if any."""

    role: str
    model: str
    tokens_in: int
    tokens_out: int
    seconds: float
    money: float | None
    fault: str = ""


@dataclass
class Ledger:
    calls: list[Call] = field(default_factory=list)

    @staticmethod
    @contextmanager
    def timed() -> Iterator[Callable[[], float]]:
        """Gives a function that tells the seconds since the block began."""
        started = time.monotonic()
        yield lambda: time.monotonic() - started
