"""Find kernels that only move data: each value that they leave is one that they were given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accelopt_profiling.gate.observe.provenance import Numbers, foreign, numbers_of

#: Launches with more elements than this are taken to compute; the check is made on small inputs.
_ELEMENTS = 1 << 21
#: Of each output, so many elements spread over it are looked up.
_PROBES = 4096


class Movement:
    """Compares what launches leave in memory with what they were given.

    ``only`` is True when there was a launch and every one of them left nothing but floats that it had been given.
    """

    def __init__(self) -> None:
        self._given: list[Any] = []
        self._seen: list[Numbers] = []
        self._whole = True
        self._launches = 0
        self._computed = False
        self._fresh = True

    @property
    def only(self) -> bool:
        return self._launches > 0 and not self._computed

    def made_elsewhere(self, outputs: list[Any]) -> int:
        """Return the size of the largest output that holds what no launch was given or left; 0 where nobody knows."""
        return foreign(outputs, self._seen) if self._whole else 0

    def read(self, array: Any) -> None:
        """An input of a launch."""
        if self._fresh:
            self._given, self._fresh = [], False
        self._given.append(np.asarray(array))
        self._see([array])

    def left(self, array: Any) -> None:
        """An output of the launch whose inputs were read before."""
        self._fresh = True
        self._launches += 1
        self._computed = self._computed or not _among(np.asarray(array), self._given)
        self._see([array])

    def _see(self, arrays: list[Any]) -> None:
        """Remember values, up to some number."""
        if self._whole:
            self._seen += [n for array in arrays if (n := numbers_of(array)) is not None]
            self._whole = sum(n.size for n in self._seen) <= _ELEMENTS
            if not self._whole:
                self._seen = []

    def around(self, record: Callable[..., None], whole: Callable[[], bool]) -> Callable[..., None]:
        """Return a Triton launch: ``record(fn, source, metadata, grid, args)`` runs it on the tensors among
        ``args``. Of a launch that was not run ``whole`` nothing can be said."""

        def launch(fn: Any, source: Any, metadata: Any, grid: Any, args: Any) -> None:
            tensors = [a for a in args if hasattr(a, "untyped_storage") and a.is_floating_point()]
            large = sum(t.numel() for t in tensors) > _ELEMENTS
            self._computed, self._whole = self._computed or large, self._whole and not large
            self._see(tensors)
            before = [] if self._computed else [_numbers(t) for t in tensors]
            record(fn, source, metadata, grid, args)
            self._whole = self._whole and whole()
            self._see(tensors)
            if self._computed:
                return
            self._launches += 1
            self._computed = not whole()
            after = [_numbers(t) for t in tensors]
            changed = [
                new[new.view(np.int64) != old.view(np.int64)] for old, new in zip(before, after, strict=True)
            ]
            if not any(c.size for c in changed):
                self._computed = True  # it wrote integers, or the same again: nothing can be said
            self._computed = self._computed or not all(_among(c, before) for c in changed)

        return launch


def _numbers(tensor: Any) -> Any:
    return tensor.detach().double().contiguous().reshape(-1).numpy().copy()


def _among(values: Any, arrays: list[Any]) -> bool:
    """Check whether a sample of ``values`` occurs in ``arrays``. Integers and empty arrays say nothing."""
    if not values.size:
        return True
    if np.dtype(values.dtype).kind in "iub" or sum(g.size for g in arrays) > _ELEMENTS:
        return False
    flat = values.reshape(-1).astype(np.float64)
    probes = flat[:: max(1, flat.size // _PROBES)]
    pool = [g.reshape(-1).astype(np.float64) for g in arrays if np.dtype(g.dtype).kind not in "iub"]
    if not pool:
        return False
    return bool(np.isin(probes[~np.isnan(probes)], np.concatenate(pool)).all())
