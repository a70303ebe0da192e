"""Give a matrix product or attention a tile, warps and stages that fit each other and the target, all at once."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.product_tiles import (
    open_attention,
    open_product,
    present_product,
    schedules,
)

#: How many schedules are proposed.
_MOST_SCHEDULES = 4


def matmul_tiles(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned or len(kernel.launches) != 1:
        return
    product = open_product(kernel.subject, kernel.launches[0])
    if product is None:
        return
    present = present_product(kernel.subject, *product.sizes)
    written = 0
    for schedule in schedules(kernel.subject, present):
        new = (schedule.rows, schedule.columns, schedule.inner)
        rewrite = product.rewrite(new, schedule.warps, schedule.stages)
        if rewrite is not None and written < _MOST_SCHEDULES:
            written += 1
            yield rewrite


#: Query rows, key columns, warps and stages, as published implementations launch them for head sizes of 64 and 128.
_ATTENTION_TILES = (
    (128, 64, 4, 3),
    (128, 64, 8, 3),
    (64, 64, 4, 3),
    (128, 128, 8, 2),
    (64, 32, 4, 3),
    (128, 32, 4, 3),
)
_MOST_TILES = 3


def attention_tiles(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned or len(kernel.launches) != 1:
        return
    attention = open_attention(kernel.subject, kernel.launches[0])
    if attention is None:
        return
    rows, columns = attention.sizes
    larger = [t for t in _ATTENTION_TILES if t[0] * t[1] >= rows * columns and t[:2] != (rows, columns)]
    smaller = [t for t in _ATTENTION_TILES if t not in larger and t[:2] != (rows, columns)]
    candidates = (attention.rewrite(t[:2], t[2], t[3]) for t in (*larger, *smaller))
    yield from [rewrite for rewrite in candidates if rewrite is not None][:_MOST_TILES]
