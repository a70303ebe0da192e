"""Other people's operators, as they are on PyPI, through the profiler on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.worker_jobs import local_host

from accelopt_benchmarks.liger.operators import OPERATORS
from accelopt_benchmarks.liger.profiles import fetch, profile_operators

pytestmark = [pytest.mark.triton, pytest.mark.slow, pytest.mark.long]


async def test_operators_profile_unmodified_and_agree_with_torch(tmp_path: Path) -> None:
    package = fetch()
    async with local_host(environment={**os.environ, "PYTHONPATH": str(package)}) as host:
        outcomes = [outcome async for outcome in profile_operators(host, package, tmp_path)]
    assert [o for o in outcomes if not o.profiled] == []
    assert len(outcomes) == len(OPERATORS) >= 8
    assert all(us is not None and us > 0 for o in outcomes for us in o.kernels.values())
