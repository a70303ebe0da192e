"""Runs the programs of a launch that may wait for one another: each in a thread, of which one runs at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any


class ProgramAbortedError(BaseException):
    """Ends a program because another one failed. A BaseException, so that kernels do not catch it as an error."""


class ProgramGroup:
    """``count`` programs that run in order, each until it ends or waits; ``running`` is the one that does. ``leave``
    returns what a program has of its own in the emulated core, ``enter`` puts it back."""

    def __init__(self, count: int, enter: Callable[[int, Any], None], leave: Callable[[], Any]) -> None:
        self.count = count
        self._enter, self._leave = enter, leave
        self._turns = [threading.Semaphore(0) for _ in range(count)]
        self._over = threading.Semaphore(0)
        self._ready = list(range(count))
        self._waits: dict[int, tuple[object, Any]] = {}
        self._met: list[Any] = []
        self.running = 0
        self._aborted = False
        self._error: BaseException | None = None
        self._results: list[Any] = [None] * count

    def run(self, program: Callable[[], Any]) -> Any:
        """Run ``program`` for each of them, and return what the last one returned. Raises what the first one to fail
        raised."""
        threads = [
            threading.Thread(target=copy_context().run, args=(self._body, at, program))
            for at in range(self.count)
        ]
        for thread in threads:
            thread.start()
        self._next()
        self._over.acquire()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return self._results[-1]

    def meet(self, key: object, value: Any) -> Sequence[Any] | None:
        """Wait until every program is here with the same ``key``. Return the values that they came with, in order; None
        where that cannot happen any more."""
        at = self.running
        self._waits[at] = (key, value)
        own = self._leave()
        self._next()
        self._turns[at].acquire()
        if self._aborted:
            raise ProgramAbortedError
        self.running = at
        self._enter(at, own)
        return None if self._waits.pop(at, None) else self._met

    def _body(self, at: int, program: Callable[[], Any]) -> None:
        self._turns[at].acquire()
        try:
            if not self._aborted:
                self.running = at
                self._enter(at, None)
                self._results[at] = program()
        except ProgramAbortedError:
            pass
        except BaseException as error:
            self._error = error
            self._aborted = True
        self._next()

    def _next(self) -> None:
        """Let the next program run; called by the one that ran."""
        if self._aborted:
            self._ready, self._waits = sorted({*self._ready, *self._waits}), {}
        if (
            not self._ready
            and len(self._waits) == self.count
            and len({k for k, _ in self._waits.values()}) == 1
        ):
            self._met = [self._waits[at][1] for at in range(self.count)]
            self._ready, self._waits = list(range(self.count)), {}
        if self._ready:
            self._turns[self._ready.pop(0)].release()
        elif self._waits:
            self._turns[min(self._waits)].release()  # it will be told that it waits in vain
        else:
            self._over.release()
