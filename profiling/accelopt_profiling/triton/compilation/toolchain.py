"""The programs of Triton's wheel that compile a kernel (ptxas, cuobjdump, nvdisasm), and a cache folder per file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from accelopt_profiling.targets import GpuTarget


def versions(target: GpuTarget) -> dict[str, str]:
    """Return Triton's version and, for NVIDIA, that of the ptxas it uses for the architecture.

    Triton takes ``ptxas-blackwell`` from compute capability 10.0 on (3.9: from 9.0 on) and ``ptxas`` below; which
    one counts is asked from Triton itself.
    """
    import triton

    found = {"triton": triton.__version__}
    if target.backend == "cuda":
        from triton.backends.nvidia.compiler import get_ptxas

        tool = get_ptxas(int(target.arch))
        found["ptxas"] = str(tool.version)
    return found


def cuda_tool(name: str) -> str:
    """Return the path of "cuobjdump" or "nvdisasm", as Triton finds it (its wheel, or ``TRITON_<NAME>_PATH``)."""
    from triton import knobs

    return str(getattr(knobs.nvidia, name).path)


_MARK = "accelopt-"


def cache_folder(file: str, root: Path) -> Path:
    """Return the cache folder for kernels of ``file`` below ``root``."""
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
