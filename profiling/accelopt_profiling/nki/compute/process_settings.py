"""Settings of the process that make emulation faster: BLAS threads, the memory allocator, the garbage collector."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

_THREAD_SETTERS = ("openblas_set_num_threads", "scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_",
          "openblas_set_num_threads64_")  # fmt: skip


@lru_cache(maxsize=1)
def _thread_setter() -> Callable[[int], object] | None:
    """Return the function of the loaded OpenBLAS library that sets the number of threads; None where there is
    none."""
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
        for name in _THREAD_SETTERS:
            function = getattr(library, name, None)
            if function is not None:
                function.argtypes, function.restype = [ctypes.c_int], None
                setter: Callable[[int], object] = function
                return setter
    return None


@lru_cache(maxsize=1)
def _default_threads() -> int:
    """Return the number of threads that NumPy would use."""
    setting = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(int(setting), available) if setting.isdigit() and int(setting) else available


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy's matrix products use one thread while the context is open.

    A product of two tiles takes a tenth of a millisecond; waking other threads for it costs more than it saves, and
    tens of milliseconds where the other cores are busy. NumPy has no call for this, so the functions of the OpenBLAS
    library that it has loaded are used; with another BLAS nothing changes.
    """
    setter = _thread_setter()
    if setter is None or _default_threads() == 1:
        yield
        return
    setter(1)
    try:
        yield
    finally:
        setter(_default_threads())


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
#: The largest block size, in bytes, that glibc accepts as the threshold for mapping.
_LARGEST_BLOCK = 32 << 20
#: Free bytes that are kept at the end of the heap.
_KEPT_BYTES = 512 << 20


@lru_cache(maxsize=1)
def keep_freed_memory() -> bool:
    """Make glibc keep freed memory for the rest of the process; False where there is no glibc.

    glibc maps every block of more than some 100 KB anew and unmaps it when it is freed. A tile has that size, and
    zeroing its fresh pages takes as long as computing it.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    mallopt.argtypes, mallopt.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES))


@contextmanager
def collection_paused() -> Iterator[None]:
    """Keep Python's cycle collector from running while the context is open.

    A trace and a schedule are millions of small objects without cycles; searching them would double the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
