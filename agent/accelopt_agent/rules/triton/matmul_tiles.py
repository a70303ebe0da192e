"""Give a matrix product the tile, warps and stages that fit the target, all at once."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.kernel import open_triton
from accelopt_agent.rules.analysis.triton.launch_sizes import option, options_edits
from accelopt_agent.rules.analysis.triton.product_schedule import ProductSchedule, present_product, schedules
from accelopt_agent.rules.analysis.triton.product_tiles import ProductTiles, open_product

#: How many schedules are proposed.
_MOST = 4
_WARPS, _STAGES = 4, 3


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
        rewrite = _rewrite(product, schedule)
        if rewrite is not None and written < _MOST:
            written += 1
            yield rewrite


def _rewrite(product: ProductTiles, schedule: ProductSchedule) -> Rewrite | None:
    launch, kernel = product.launch, product.kernel
    new = (schedule.rows, schedule.columns, schedule.inner)
    warps, stages = option(launch, "num_warps", _WARPS), option(launch, "num_stages", _STAGES)
    if (
        warps is None
        or stages is None
        or (new == product.sizes and (schedule.warps, schedule.stages) == (warps, stages))
    ):
        return None
    resized = product.resized(new)
    if resized is None:
        return None
    inside, outside, added = resized
    options = dict(added)
    if schedule.warps != warps:
        options["num_warps"] = str(schedule.warps)
    if schedule.stages != stages:
        options["num_stages"] = str(schedule.stages)
    outside += options_edits(kernel, launch.call, options) if options else []
    tile = "x".join(str(n) for n in new)
    was = "x".join(str(n) for n in product.sizes)
    summary = f"Tiles of {tile} instead of {was}, with {schedule.warps} warps and {schedule.stages} stages."
    return Rewrite(tuple(inside), summary, tuple(outside))
