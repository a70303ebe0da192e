"""Fetches the ``liger-kernel`` wheel with pip into a cache folder and unpacks it; it is never installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from platformdirs import user_cache_path

VERSION = "0.8.5"


def fetch(cache: Path | None = None) -> Path:
    """Return the folder that holds the ``liger_kernel`` package.

    Raises:
        RuntimeError: pip cannot get it; its message says why.
    """
    cache = cache or user_cache_path("accelopt") / f"liger-{VERSION}"
    package = cache / "package"
    if not (package / "liger_kernel" / "ops").is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        download = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(cache)]
        done = subprocess.run(
            [*download, f"liger-kernel=={VERSION}"], capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            raise RuntimeError(f"pip cannot download liger-kernel {VERSION}: {done.stderr.strip()}")
        (wheel,) = cache.glob("liger_kernel-*.whl")
        zipfile.ZipFile(wheel).extractall(package)
    return package
