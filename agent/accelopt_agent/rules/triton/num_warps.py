"""Launch with twice or half as many warps, or add such a config to the autotuner's."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.launch_options import neighbours

#: Triton's default, and bounds that every supported GPU runs (1024 threads or fewer per program).
_DEFAULT, _LEAST, _MOST = 4, 1, 16


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    yield from neighbours(subject, "num_warps", _DEFAULT, _near)


def _near(warps: int) -> list[int]:
    return [n for n in (warps * 2, warps // 2) if _LEAST <= n <= _MOST]
