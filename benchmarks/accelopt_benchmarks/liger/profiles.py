"""Profiles operators of the package on a host, each file unedited, forward and backward. The ``liger-kernel`` wheel is
fetched with pip into a cache folder and unpacked, never installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import user_cache_path

from accelopt_benchmarks.liger.operators import OPERATORS, problem_text
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.jobs import MeasureOptions
from accelopt_profiling.measurement import FileMeasurement
from accelopt_profiling.profiler import ProfileRequest, profile


@dataclass(frozen=True)
class OperatorProfile:
    """``profiled``: each launched kernel has an estimate and the results agree with PyTorch's."""

    operator: str
    profiled: bool
    correctness: str
    kernels: dict[str, float | None] = field(default_factory=dict)  # estimate in us
    trouble: list[str] = field(default_factory=list)


async def profile_operators(
    host: Host, package: Path, folder: Path, names: Iterable[str] = OPERATORS, target: str = "h100"
) -> AsyncGenerator[OperatorProfile, None]:
    """Profile the named operators, one after the other.

    ``host`` must see ``package`` on its import path; ``folder`` is where the operators' files and their problems are
    put side by side.
    """
    for name in names:
        path = folder / f"liger_{name}.py"
        shutil.copy(package / "liger_kernel" / "ops" / f"{name}.py", path)
        path.with_name(f"liger_{name}_problem.py").write_text(problem_text(name))
        request = ProfileRequest(
            examine(path, path.read_text()), {"triton": target}, options=MeasureOptions(detail=False)
        )
        async with aclosing(profile(host, request)) as growing:
            results = [measurement async for measurement in growing]
        yield _outcome(name, results[-1])


def _outcome(name: str, measurement: FileMeasurement) -> OperatorProfile:
    launched = [k for k in measurement.kernels if k.stage != "traced"]
    findings = [*measurement.findings, *(f for k in launched for f in k.findings)]
    trouble = [f"line {f.line}: {f.code}: {f.message}" for f in findings if f.severity == "error"]
    estimates = {k.name: k.latency.us for k in launched}
    status = launched[0].correctness.status if launched else "not checked"
    return OperatorProfile(
        name,
        bool(launched) and status == "passed" and not trouble and all(estimates.values()),
        status,
        estimates,
        trouble,
    )


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
