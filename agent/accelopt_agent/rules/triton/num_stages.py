"""Pipeline loads in a loop one stage deeper or shallower."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.kernel import open_triton
from accelopt_agent.rules.analysis.triton.launch_options import neighbours

#: Triton's default on NVIDIA GPUs, and bounds beyond which shared memory runs out for useful tiles.
_DEFAULT, _LEAST, _MOST = 3, 1, 6


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_triton(subject)
    if kernel is None:
        return
    in_loop = any(
        isinstance(p, cst.For) for load in kernel.calls("load") for p in kernel.source.parents(load)
    )
    if in_loop:
        yield from neighbours(
            subject, "num_stages", _DEFAULT, lambda n: [m for m in (n + 1, n - 1) if _LEAST <= m <= _MOST]
        )
