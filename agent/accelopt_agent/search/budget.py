"""Counts the use of a run against its budget."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from accelopt_agent.events import ModelCall, Usage
from accelopt_agent.request import Budget
from accelopt_agent.search.paid import PaidWork

#: The share of a run's time that is kept for a check before one has shown how long it takes, and the most that is kept.
CHECK_SHARE, MOST_FOR_CHECK = 0.25, 0.5


class BudgetExhaustedError(Exception):
    """The run has to end. The message names the limit that is reached."""


class Meter:
    """The use of one run against its budget. ``clock`` gives seconds; ``paid`` stores what was paid for."""

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self._clock, self._started = clock, clock()
        self.candidates = self.judged = self.skipped = self.remembered = 0
        self.calls: list[ModelCall] = []
        self._longest_check, self._rests = 0.0, False
        self.paid = PaidWork()
        self._news: list[str] = []
        self._told: asyncio.Event | None = None

    def tell(self, line: str) -> None:
        """Keep a line for the person, for whoever waits in ``news_came``."""
        self._news.append(line)
        if self._told is not None:
            self._told.set()

    def take_news(self) -> list[str]:
        """Return the lines that were told since the last call."""
        news, self._news = self._news, []
        return news

    async def news_came(self) -> None:
        """Wait until there is a line to take."""
        if not self._news:
            self._told = asyncio.Event()
            await self._told.wait()

    @property
    def tokens_in(self) -> int:
        return sum(call.tokens_in for call in self.calls)

    @property
    def tokens_out(self) -> int:
        return sum(call.tokens_out for call in self.calls)

    @property
    def money(self) -> float | None:
        """The price of all calls; None when no price is configured."""
        prices = [call.money for call in self.calls if call.money is not None]
        return sum(prices) if prices else None

    @property
    def usage(self) -> Usage:
        seconds = self._clock() - self._started
        return Usage(
            self.candidates,
            self.judged,
            skipped=self.skipped,
            model_calls=len(self.calls),
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            seconds=seconds,
            money=self.money,
            remembered=self.remembered,
        )

    def time_left(self) -> float | None:
        """Return the seconds until the time is up, below 0 afterwards.

        None without a limit and while it rests.
        """
        if self.budget.seconds is None or self._rests:
            return None
        return self.budget.seconds - (self._clock() - self._started)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time is up, at least 0. None without a limit and while it rests."""
        rest = self.time_left()
        return None if rest is None else max(0.0, rest)

    @property
    def keeps_rest_for_check(self) -> bool:
        """Whether no more time is left than a check may need: as much as the longest so far took."""
        seconds, rest = self.budget.seconds, self.seconds_left
        if seconds is None or rest is None:
            return False
        return rest <= min(self._longest_check or CHECK_SHARE * seconds, MOST_FOR_CHECK * seconds)

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Note how long the block, a check, takes."""
        began = self._clock()
        try:
            yield
        finally:
            self._longest_check = max(self._longest_check, self._clock() - began)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Leave the time inside the block out of the count."""
        began, self._rests = self._clock(), True
        try:
            yield
        finally:
            self._started += self._clock() - began
            self._rests = False

    @property
    def candidates_left(self) -> int:
        return max(0, self.budget.candidates - self.candidates)

    @property
    def tries_left(self) -> float:
        """How many candidates can still be tried: the rest of the budget, or fewer where the time allows no more when
        each takes as long as those so far."""
        rest, tried = self.seconds_left, self.candidates
        if rest is None or not tried:
            return self.candidates_left
        return min(self.candidates_left, rest * tried / max(self._clock() - self._started, 1e-9))

    def spent(self) -> str | None:
        """Name the reached limit without which no work can go on, as one line; None if none is reached."""
        if self.budget.seconds is not None and self.seconds_left == 0.0:
            return f"the time of {self.budget.seconds:g} s is used up"
        if not self.candidates_left:
            return f"all {self.budget.candidates} candidates are tried"
        return None

    def model_spent(self) -> str | None:
        """Name the reached limit that forbids another call of the model, as one line; None if none is reached."""
        if self.budget.tokens is not None and self.tokens_in + self.tokens_out >= self.budget.tokens:
            return f"the {self.budget.tokens} tokens are used up"
        if self.budget.money is not None and (self.money or 0.0) >= self.budget.money:
            return f"the money ({self.budget.money:g}) is used up"
        return None

    def book(self, call: ModelCall) -> None:
        """Enter one call of a model in the ledger."""
        self.calls.append(call)
