"""Work on several iterations of an outer loop at a time, so that what does not depend on it is loaded once for all."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.loops import loop_variable, trip_count
from accelopt_agent.rules.analysis.nki.independence import independent
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel, open_nki
from accelopt_agent.rules.analysis.nki.list_blocking import ListBlocking
from accelopt_agent.rules.analysis.nki.loop_blocking import Blocking
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext

#: How many iterations are worked on at a time. PSUM has eight banks for sums of 512 columns in float32.
_SIZES = (4, 8, 2)

_WORDS = ("affine_range", "ndarray", "par_dim", "arange", "sbuf")


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    for size in _SIZES:
        for statement in kernel.flow.statements:
            if isinstance(statement.node, cst.For) and (rewrite := _blocked(kernel, statement.node, size)):
                yield rewrite


def _blocked(kernel: NkiKernel, loop: cst.For, size: int) -> Rewrite | None:
    variable, count = loop_variable(loop), trip_count(kernel.flow, loop)
    if variable is None or loop.orelse is not None or not isinstance(loop.iter, cst.Call):
        return None
    if count is not None and (count % size or count == size == 1):
        return None
    names = [f"{variable}_{part}" for part in ("block", "outer", "inner")]
    if any(kernel.flow.occurrences(name) for name in names):
        return None
    ranges = kernel.path(loop.iter.func) or kernel.source.code(loop.iter.func)
    if kernel.dialect.mutates:
        counted = ranges in ("range", f"{NL}.affine_range") and len(loop.iter.args) == 1
        fits = counted and independent(kernel, loop)
        return (
            ListBlocking(kernel, loop, variable, size, {"affine_range": "range"}).rewrite() if fits else None
        )
    words = {w: spelled for w in _WORDS if (spelled := kernel.spelled(f"{NL}.{w}"))}
    if ranges != f"{NL}.affine_range" or len(words) != len(_WORDS):
        return None
    return Blocking(kernel, loop, variable, size, words).rewrite()
