"""Stand in for Triton's benchmarks: nothing is timed or drawn, and of the sizes of a plot two are run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, Protocol


class BenchmarkSession(Protocol):
    """What a benchmark needs of the session that it runs in."""

    @property
    def launched(self) -> int:
        """How many launches there were."""

    def cost_only(self, run: Callable[[], Any]) -> None:
        """Run something of which nothing but the cost of its launches counts, if the session counts costs."""


def run_once(
    function: Callable[[], Any], *_: Any, quantiles: Any = None, return_mode: str = "mean", **__: Any
) -> Any:
    """Stands in for ``triton.testing.do_bench``: calls the function once and returns NaN as its time."""
    function()
    nan = float("nan")
    if quantiles is not None and len(quantiles) > 1:
        return [nan] * len(quantiles)
    return [nan] if return_mode == "all" else nan


def sizes_of(session: BenchmarkSession) -> Callable[..., None]:
    """Return what stands in for ``perf_report(...).run``: each line of a plot at its first size, and where that
    launched kernels, for their cost at its largest.
    """

    def run(mark: Any, *_: Any, **__: Any) -> None:
        for bench in mark.benchmarks if isinstance(mark.benchmarks, (list, tuple)) else [mark.benchmarks]:
            first, largest = bench.x_vals[0], max(bench.x_vals, key=_extent)
            for line in bench.line_vals:
                before = session.launched
                _call(mark, bench, line, first)
                if session.launched > before and _extent(largest) > _extent(first):
                    session.cost_only(partial(_call, mark, bench, line, largest))

    return run


def _extent(size: Any) -> float:
    """Return how large one of a plot's sizes is: the product of its numbers."""
    values = size if isinstance(size, (list, tuple)) else [size]
    return prod(v for v in values if isinstance(v, (int, float)))


def _call(mark: Any, bench: Any, line: Any, size: Any) -> None:
    values = size if isinstance(size, (list, tuple)) else [size] * len(bench.x_names)
    mark.fn(**dict(zip(bench.x_names, values, strict=True)), **{bench.line_arg: line}, **bench.args)
