"""Where Triton keeps what it compiled for us.

Triton's cache key holds a kernel's source text and first line but not its file's path. A binary compiled from
``a.py`` would be served for the same kernel in ``b.py``, and its line table would name ``a.py``. Each file *name* gets
a cache of its own, and lines are matched by file name: the same file in another folder (each job has its own folder)
is still served from the cache, and its lines are right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

_MARK = "accelopt-"


def cache_folder(file: str, root: Path) -> Path:
    """The cache folder for kernels of ``file`` below ``root``."""
    name = PurePath(file).name
    return root / f"{_MARK}{hashlib.sha256(name.encode()).hexdigest()[:16]}"


@contextmanager
def own_cache(file: str, root: Path | None = None) -> Iterator[Path]:
    """Let Triton use the cache for ``file`` inside the ``with`` block, and yield its folder.

    ``root`` is Triton's own cache folder (``TRITON_CACHE_DIR``) unless given. Blocks may be nested.
    """
    from triton import knobs

    before = Path(knobs.cache.dir)
    if root is None:
        root = before.parent if before.name.startswith(_MARK) else before
    folder = cache_folder(file, root)
    with knobs.cache.scope():
        knobs.cache.dir = str(folder)
        yield folder
