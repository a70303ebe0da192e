"""Kernels whose writes are worth nothing: what a Triton launch stored is overwritten when it ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.triton.interpreter.coverage import SampleCoverage
from accelopt_profiling.triton.interpreter.memory_bounds import Region

#: All bits set: NaN in every float format, -1 or the largest value in integers.
_SPOILED = 0xFF


class Spoiling(SampleCoverage):
    """Takes the place of a session's coverage: it is told every access, and needs to know nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self._stores: list[tuple[Region, Any, int]] = []

    def begin_launch(self) -> None:
        self._stores = []

    def begin_program(self) -> None:
        pass

    def access(self, kind: str, region: Region, addresses: Any, itemsize: int) -> None:
        if kind != "load" and addresses.size:
            self._stores.append((region, np.asarray(addresses).reshape(-1), itemsize))

    def end_program(self) -> None:
        pass

    def end_launch(self, complete: bool) -> None:
        import torch

        for region, addresses, itemsize in self._stores:
            if region.storage is None:
                continue
            first = addresses.astype(np.int64) - region.base
            places = (first[:, None] + np.arange(itemsize)).reshape(-1)
            memory = torch.empty(0, dtype=torch.uint8).set_(region.storage)
            memory[torch.from_numpy(places)] = _SPOILED
        self._stores = []

    def poison(self, tensors: list[Any]) -> None:
        pass
