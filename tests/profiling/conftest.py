"""A host for the checks of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.gate_checker import Checker, running_checker


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with running_checker() as running:
        yield running
