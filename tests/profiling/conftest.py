"""The gate and the step ``profile`` on the worker that all tests have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from support.gate_checker import Checker
from support.shared_host import SharedWorkers
from support.step_profiles import StepProfiles


@pytest.fixture(scope="session")
def checker(workers: SharedWorkers) -> Iterator[Checker]:
    loop = asyncio.new_event_loop()
    yield Checker(loop, workers.host())
    loop.close()


@pytest.fixture(scope="session")
def profiles(workers: SharedWorkers) -> Iterator[StepProfiles]:
    profiles = StepProfiles(workers.host())
    yield profiles
    profiles.close()
