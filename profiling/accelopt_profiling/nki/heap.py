"""Keep memory that tiles gave back, instead of returning it to the system and faulting it in again page by page.

glibc maps every block of more than some 100 KB anew and unmaps it when freed; a tile has that size, and zeroing its
fresh pages takes as long as computing it. Elsewhere nothing changes.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
#: The largest threshold that glibc takes for mapping.
_BLOCK = 32 << 20
#: Free memory at the end of the heap that is kept.
_KEPT = 512 << 20


@lru_cache(maxsize=1)
def keep_freed_memory() -> bool:
    """Set the thresholds of this process, once; tells whether there was a glibc to set them in."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    mallopt.argtypes, mallopt.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
    return bool(mallopt(_MMAP_THRESHOLD, _BLOCK)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))
