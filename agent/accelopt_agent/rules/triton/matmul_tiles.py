"""Give a matrix product the tile, warps and stages that fit the target, all at once."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.kernel import open_triton
from accelopt_agent.rules.analysis.triton.product_schedule import present_product, schedules
from accelopt_agent.rules.analysis.triton.product_tiles import open_product

#: How many schedules are proposed.
_MOST = 4


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_triton(subject)
    if kernel is None or kernel.is_autotuned or len(kernel.launches) != 1:
        return
    product = open_product(subject, kernel.launches[0])
    if product is None:
        return
    present = present_product(subject, *product.sizes)
    written = 0
    for schedule in schedules(subject, present):
        new = (schedule.rows, schedule.columns, schedule.inner)
        rewrite = product.rewrite(new, schedule.warps, schedule.stages)
        if rewrite is not None and written < _MOST:
            written += 1
            yield rewrite
