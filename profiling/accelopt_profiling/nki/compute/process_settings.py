"""One thread for NumPy's matrix products, while they are products of tiles.

A product of two tiles takes a tenth of a millisecond; waking other threads for it costs more than it saves, and tens
of milliseconds where the other cores are busy. NumPy has no call for this, so the functions of the OpenBLAS library
that it has loaded are used; where there is none (another BLAS), nothing changes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

_NAMES = ("openblas_set_num_threads", "scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_",
          "openblas_set_num_threads64_")  # fmt: skip


@lru_cache(maxsize=1)
def _setter() -> Callable[[int], object] | None:
    """The function of the loaded OpenBLAS that sets the number of threads."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = {line.split()[-1] for line in maps if "openblas" in line and ".so" in line}
    except OSError:
        return None
    for path in sorted(paths):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in _NAMES:
            function = getattr(library, name, None)
            if function is not None:
                function.argtypes, function.restype = [ctypes.c_int], None
                found: Callable[[int], object] = function
                return found
    return None


@lru_cache(maxsize=1)
def _all() -> int:
    """The threads that NumPy would use."""
    wanted = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(int(wanted), available) if wanted.isdigit() and int(wanted) else available


@contextmanager
def one_thread() -> Iterator[None]:
    """Products use one thread, until the context ends."""
    setter = _setter()
    if setter is None or _all() == 1:
        yield
        return
    setter(1)
    try:
        yield
    finally:
        setter(_all())
