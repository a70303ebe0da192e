"""Give attention a tile of scores, warps and stages that fit each other."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.kernel import open_triton
from accelopt_agent.rules.analysis.triton.product_tiles import open_attention

#: Query rows, key columns, warps and stages, as published implementations launch them for head sizes of 64 and 128.
_TILES = ((128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 3), (128, 128, 8, 2), (64, 32, 4, 3), (128, 32, 4, 3))
_MOST = 3


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_triton(subject)
    if kernel is None or kernel.is_autotuned or len(kernel.launches) != 1:
        return
    attention = open_attention(subject, kernel.launches[0])
    if attention is None:
        return
    rows, columns = attention.sizes
    larger = [t for t in _TILES if t[0] * t[1] >= rows * columns and t[:2] != (rows, columns)]
    smaller = [t for t in _TILES if t not in larger and t[:2] != (rows, columns)]
    made = (attention.rewrite(t[:2], t[2], t[3]) for t in (*larger, *smaller))
    yield from [rewrite for rewrite in made if rewrite is not None][:_MOST]
