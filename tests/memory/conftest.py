"""A memory in a fresh folder, and pairs to put into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.silu_kernel import SLOW

from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path) as opened:
        yield opened


@pytest.fixture
def make_pair() -> Callable[..., Pair]:
    def make(number: int = 0, **changes: object) -> Pair:
        values: dict[str, object] = {
            "kernel": "silu",
            "dialect": "nki",
            "target": "trn1",
            "slow_text": SLOW,
            "fast_text": SLOW.replace("128", str(256 + number)),
            "slow_hash": "slow",
            "fast_hash": f"fast{number}",
            "origin": "rule:larger-tile",
            "summary": "larger tiles along the free dimension",
            "features": kernel_features(SLOW, "silu", "DMA"),
            "slow": Latency(100.0, 90.0, 110.0, Known.ESTIMATED),
            "fast": Latency(50.0, 45.0, 55.0, Known.ESTIMATED),
            "steps": ("rule:larger-tile",),
        }
        return Pair(**{**values, **changes})  # type: ignore[arg-type]

    return make
