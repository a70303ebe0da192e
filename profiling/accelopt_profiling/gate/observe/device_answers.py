"""Give a candidate answers like a device's about times and memory: positive, plausible, and different each time.

Nothing is timed here, and a profile says so (NaN). In the gate a NaN, or a counter that stays 0, would tell code that
no device is there, and it could behave. The answers follow from how often was asked, so that a verdict is repeatable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_MIB = 1 << 20
#: Bytes that a CUDA context takes, about.
_CONTEXT = 430 * _MIB
#: torch's allocator hands memory out in steps of so many bytes (c10/cuda/CUDACachingAllocator, kMinBlockSize).
_STEP = 512


class _Variation:
    """Numbers from 0 to 1, always the same ones in the same order (a linear congruential generator)."""

    def __init__(self) -> None:
        self._state = 12345

    def next(self) -> float:
        self._state = (1103515245 * self._state + 12345) % (1 << 31)
        return self._state / (1 << 31)


class DeviceAnswers:
    """A device's clock and memory, as far as anybody asks."""

    def __init__(self, total: int) -> None:
        self._variation = _Variation()
        self._ms = 0.0
        self._total = total

    def now(self) -> float:
        """Milliseconds on the device's clock: each question is asked some microseconds after the one before."""
        self._ms += 0.006 + 0.02 * self._variation.next()
        return self._ms

    def allocated(self, *_: Any, **__: Any) -> int:
        return _STEP * round((24 * _MIB + 8 * _MIB * self._variation.next()) / _STEP)

    def reserved(self, *_: Any, **__: Any) -> int:
        return 64 * _MIB

    def info(self, *_: Any, **__: Any) -> tuple[int, int]:
        return self._total - _CONTEXT - self.reserved(), self._total

    def statistics(self, *_: Any, **__: Any) -> dict[str, int]:
        allocated, reserved = self.allocated(), self.reserved()
        bytes_by_name = {
            f"allocated_bytes.all.{when}": allocated for when in ("current", "peak", "allocated")
        }
        return {
            **bytes_by_name,
            **{f"reserved_bytes.all.{when}": reserved for when in ("current", "peak", "allocated")},
        }

    def benchmark(
        self, function: Callable[[], Any], *_: Any, quantiles: Sequence[float] | None = None,
        return_mode: str = "mean", **__: Any,
    ) -> Any:  # fmt: skip
        """Stands in for ``triton.testing.do_bench``: calls the function once."""
        function()
        if quantiles is not None and len(quantiles) > 1:
            return sorted(0.01 + 0.01 * self._variation.next() for _ in quantiles)
        if return_mode == "all":
            return [0.01 + 0.01 * self._variation.next() for _ in range(10)]
        return 0.01 + 0.01 * self._variation.next()

    def event_class(self, base: type[Any]) -> type[Any]:
        """Return a class of events with times."""
        answers = self

        class Event(base):  # type: ignore[misc]
            at: float | None = None

            def record(self, *_: Any) -> None:
                self.at = answers.now()

            def elapsed_time(self, other: Any) -> float:
                if self.at is None or other.at is None:
                    raise RuntimeError("Both events must be recorded before calculating elapsed time.")
                return float(other.at - self.at)

        return Event


@contextmanager
def device_answers(total: int) -> Iterator[None]:
    """Have torch and Triton answer so in the body, where a GPU is emulated that has ``total`` bytes of memory."""
    import torch
    import triton.testing

    answers = DeviceAnswers(total)
    cuda, testing = torch.cuda, triton.testing
    replaced = {
        (cuda, "Event"): answers.event_class(cuda.Event),
        (cuda, "memory_allocated"): answers.allocated, (cuda, "max_memory_allocated"): answers.allocated,
        (cuda, "memory_reserved"): answers.reserved, (cuda, "max_memory_reserved"): answers.reserved,
        (cuda, "mem_get_info"): answers.info, (cuda, "memory_stats"): answers.statistics,
        (testing, "do_bench"): answers.benchmark, (testing, "do_bench_cudagraph"): answers.benchmark,
    }  # fmt: skip
    before = {place: getattr(*place) for place in replaced}
    try:
        for (owner, name), value in replaced.items():
            setattr(owner, name, value)
        yield
    finally:
        for (owner, name), value in before.items():
            setattr(owner, name, value)
